-- 0016_notices.sql: what people are sent, from the moment a fact says so until it is sent or given up.

-- The language somebody reads; notices are written in it.
ALTER TABLE account ADD COLUMN locale text NOT NULL DEFAULT 'en'
    CONSTRAINT a_locale_is_a_short_name CHECK (locale ~ '^[a-z]{2,3}$');

CREATE TYPE notice_state AS ENUM (
    'queued',      -- to be sent when it is due
    'sent',        -- the other side has it
    'kept',        -- nobody sends mail here: its letter is kept for the demo's mail page
    'unsent',      -- nobody sends mail here, and nobody keeps it
    'moot',        -- when its turn came it was not true any more
    'dead'         -- refused, or tried often enough: a person must look
);

CREATE TABLE notice (
    id         bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fact_id    bigint,                                   -- NULL: no fact, a duty saw it coming
    kind       text         NOT NULL,                    -- Kind in notices/notice.py
    channel    text         NOT NULL,                    -- mail, sms, push
    account_id bigint,                                   -- NULL: nobody has signed up by this address
    address    text         NOT NULL,
    name       text         NOT NULL,
    locale     text         NOT NULL,
    show_id    bigint       NOT NULL,
    number     bigint,                                   -- of the booking
    body       jsonb        NOT NULL DEFAULT '{}',       -- what is not read when it is written out
    state      notice_state NOT NULL DEFAULT 'queued',
    round      int          NOT NULL DEFAULT 1,          -- of sending; a person may have it sent anew
    tries      int          NOT NULL DEFAULT 0,          -- in this round
    turn       int          NOT NULL DEFAULT 0,          -- whose turn it is to send it: grows
    due_at     timestamptz  DEFAULT now(),               -- when somebody should; NULL: nobody has to
    reason     text,                                     -- why not, the last time
    written_at timestamptz  NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    CONSTRAINT one_notice_a_fact_and_person UNIQUE (fact_id, kind, channel, address),
    CONSTRAINT queued_is_due CHECK ((state = 'queued') = (due_at IS NOT NULL)),
    CONSTRAINT queued_or_ended CHECK ((state = 'queued') = (ended_at IS NULL)),
    CONSTRAINT ways_to_somebody CHECK (channel IN ('mail', 'sms', 'push'))
);

-- However often the duty looks: a person is warned once of a hold that is about to lapse.
CREATE UNIQUE INDEX one_warning_a_booking ON notice (show_id, number, channel) WHERE kind = 'hold_lapsing';
CREATE INDEX notices_due ON notice (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX notices_dead ON notice (id) WHERE state = 'dead';
CREATE INDEX notices_by_end ON notice (ended_at) WHERE ended_at IS NOT NULL;

-- Whole letters, where nobody sends them: they have codes of tickets in them and are soon forgotten.
CREATE TABLE kept_letter (
    notice_id bigint      PRIMARY KEY REFERENCES notice ON DELETE CASCADE,
    subject   text        NOT NULL,
    letter    bytea       NOT NULL,                      -- as it would have gone to the mail server
    kept_at   timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX kept_letters_by_age ON kept_letter (kept_at);

-- Under which name an organiser's letters go out, and where answers to them go.
CREATE TABLE organiser_sender (
    organiser_id bigint PRIMARY KEY,
    from_name    text   NOT NULL,
    reply_to     text   NOT NULL DEFAULT '',             -- empty: to us
    CONSTRAINT a_sender_has_a_short_name CHECK (char_length(from_name) BETWEEN 1 AND 80)
);

-- A show that begins at another time: who has tickets must be told, and from when to when. Other changes of a
-- show (prices, limits) are nothing to them, and show.changed does not say which it was.
CREATE TABLE show_move (
    show_id       bigint      NOT NULL,
    revision      bigint      NOT NULL,                  -- of the show, that began with it
    starts_before timestamptz NOT NULL,
    starts_at     timestamptz NOT NULL,
    PRIMARY KEY (show_id, revision)
);

CREATE FUNCTION note_moved_show() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO show_move (show_id, revision, starts_before, starts_at)
    VALUES (NEW.id, NEW.revision, OLD.starts_at, NEW.starts_at);
    RETURN NULL;
END $$;

CREATE TRIGGER note_moved_show AFTER UPDATE OF starts_at ON show
    FOR EACH ROW WHEN (NEW.starts_at <> OLD.starts_at AND NEW.revision <> OLD.revision AND NOT NEW.cancelled)
    EXECUTE FUNCTION note_moved_show();
