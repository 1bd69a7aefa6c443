-- The ledger of the dispatch. Whatever Valkey loses, these keys give no driver two offers or rides at once.

CREATE TABLE driver (
    driver_id int PRIMARY KEY,  -- also the driver's unit in the pool of claims
    cell      bigint NOT NULL,  -- where the car was when it last reported
    is_online boolean NOT NULL DEFAULT true
);

CREATE TABLE ride (
    ride_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pickup       bigint NOT NULL,
    dropoff      bigint NOT NULL,
    state        text NOT NULL DEFAULT 'waiting'
                 CONSTRAINT ride_has_a_known_state
                 CHECK (state IN ('waiting', 'assigned', 'completed', 'no_driver')),
    requested_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    gives_up_at  timestamptz NOT NULL,  -- "no driver" from then on, unless an offer is live
    due_at       timestamptz NOT NULL DEFAULT statement_timestamp(),  -- a worker may take it from then on
    turn         int NOT NULL DEFAULT 0  -- grows with every take: the fence against a worker that slept
);

CREATE INDEX ride_due ON ride (due_at) WHERE state = 'waiting';

-- An offer is live from its row to its answer, or to its end; an accepted one until the ride has ended.
CREATE TABLE offer (
    offer_id  text PRIMARY KEY,  -- also the id of its claim
    ride_id   bigint NOT NULL REFERENCES ride,
    driver_id int NOT NULL REFERENCES driver,
    state     text NOT NULL DEFAULT 'offered'
              CONSTRAINT offer_has_a_known_state
              CHECK (state IN ('offered', 'accepted', 'declined', 'lapsed', 'ended')),
    made_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    ends_at   timestamptz NOT NULL
);

-- One key for offers and rides together: a driver on a ride gets no offer.
CREATE UNIQUE INDEX one_live_offer_or_ride_per_driver ON offer (driver_id)
    WHERE state IN ('offered', 'accepted');
CREATE UNIQUE INDEX one_live_offer_per_ride ON offer (ride_id) WHERE state IN ('offered', 'accepted');
CREATE INDEX offer_of_ride ON offer (ride_id);

CREATE TABLE assignment (
    ride_id     bigint CONSTRAINT one_driver_per_ride PRIMARY KEY REFERENCES ride,
    driver_id   int NOT NULL REFERENCES driver,
    offer_id    text NOT NULL UNIQUE REFERENCES offer,
    assigned_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    ended_at    timestamptz,
    copied      text NOT NULL DEFAULT 'nothing'  -- what a worker has copied into the pool of claims
                CONSTRAINT copied_has_a_known_value CHECK (copied IN ('nothing', 'commit', 'free'))
);

CREATE UNIQUE INDEX one_live_ride_per_driver ON assignment (driver_id) WHERE ended_at IS NULL;
CREATE INDEX assignment_to_copy ON assignment (ride_id)
    WHERE copied = 'nothing' OR (copied = 'commit' AND ended_at IS NOT NULL);
CREATE INDEX assignment_by_time ON assignment (assigned_at);

-- How fast the simulated city runs; workers divide their times by it.
CREATE TABLE pace (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    speed   double precision NOT NULL DEFAULT 1
);
INSERT INTO pace DEFAULT VALUES;

-- Every change of a state, in the order in which it happened to a driver or a ride. Triggers write it, so
-- that no statement can leave it out. Rows of different drivers and rides may be out of order by a moment.
CREATE TABLE history (
    entry     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT statement_timestamp(),
    subject   text NOT NULL,  -- 'ride' or 'offer'
    state     text NOT NULL,
    ride_id   bigint NOT NULL,
    driver_id int,
    offer_id  text
);

CREATE FUNCTION record_ride() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO history (subject, state, ride_id) VALUES ('ride', NEW.state, NEW.ride_id);
    RETURN NULL;
END $$;

CREATE FUNCTION record_offer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO history (subject, state, ride_id, driver_id, offer_id)
    VALUES ('offer', NEW.state, NEW.ride_id, NEW.driver_id, NEW.offer_id);
    RETURN NULL;
END $$;

CREATE TRIGGER ride_is_recorded AFTER INSERT OR UPDATE OF state ON ride
    FOR EACH ROW EXECUTE FUNCTION record_ride();
CREATE TRIGGER offer_is_recorded AFTER INSERT OR UPDATE OF state ON offer
    FOR EACH ROW EXECUTE FUNCTION record_offer();
