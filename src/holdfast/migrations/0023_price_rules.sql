-- 0023_price_rules.sql: prices that move by rules, with time and with what is sold.
--
-- What a seat costs is in `price`, as ever: rules never price a hold, they move that row. A duty looks, works
-- out what the rules say, and writes prices, revision, terms and audit rows in one transaction. So a price is
-- at every instant one number that everybody is shown and charged, and each change of it is a row here.

-- The rules of a show as they are now; as PriceRules in catalogue/price_rules.py.
CREATE TABLE price_plan (
    show_id bigint      PRIMARY KEY REFERENCES show,
    rules   jsonb       NOT NULL,
    coming  jsonb       NOT NULL DEFAULT '{}',           -- what is told of the next step by time, by category
    due_at  timestamptz NOT NULL,                        -- when to look again: a step by time, or sales
    CONSTRAINT a_plan_has_rules CHECK (jsonb_typeof(rules -> 'rules') = 'array')
);
CREATE INDEX price_plans_due ON price_plan (due_at);

-- Everything that ever was a show's rules, and who said so. NULL: they were taken away.
CREATE TABLE price_rules (
    show_id  bigint      NOT NULL REFERENCES show,
    id       bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    rules    jsonb,
    actor_id bigint      NOT NULL,
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, id)
);

-- Every change of a price, for ever.
CREATE TABLE price_change (
    show_id     bigint      NOT NULL REFERENCES show,
    revision    bigint      NOT NULL,                    -- from this one on
    category    text        NOT NULL,
    was_minor   bigint,                                  -- NULL: the category is new
    price_minor bigint      NOT NULL,
    why         text        NOT NULL,
    sold        int,                                     -- seats of the category sold when it was decided
    seats       int,                                     -- of so many that were for sale
    actor_id    bigint,                                  -- NULL: the rules did it
    at          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (show_id, revision, category),
    CONSTRAINT a_change_has_a_known_reason CHECK (why IN ('organiser', 'rules', 'step')),
    CONSTRAINT a_price_is_not_negative CHECK (price_minor BETWEEN 0 AND 1000000000)
);

CREATE FUNCTION price_changes_are_never_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what show % cost at revision % is history', OLD.show_id, OLD.revision
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER price_changes_are_never_changed BEFORE UPDATE OR DELETE ON price_change
    FOR EACH ROW EXECUTE FUNCTION price_changes_are_never_changed();

-- Told where it is written: no way of changing a price goes round it. One fact a show and revision.
CREATE FUNCTION tell_of_prices() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (show_id, kind, body)
    SELECT show_id, 'show.prices_changed', jsonb_build_object(
               'revision', revision, 'why', min(why),
               'prices', jsonb_agg(jsonb_build_object('category', category, 'was_minor', was_minor,
                                                      'price_minor', price_minor) ORDER BY category))
      FROM changed
  GROUP BY show_id, revision;
    RETURN NULL;
END $$;

CREATE TRIGGER tell_of_prices AFTER INSERT ON price_change REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_prices();
