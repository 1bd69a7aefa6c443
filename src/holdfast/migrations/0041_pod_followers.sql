-- 0041_pod_followers.sql: what pods do after the home database: erase people, and wait for its changes.
-- works with: 0.1.0

-- Deleted when every pod has erased them; until then it has their addresses, by which rows are found.
-- owner: privacy
CREATE TABLE erasure_due (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_ids  bigint[]    NOT NULL,
    addresses    text[]      NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now()
);

-- A number per pod that the home database raises and replicates: when it arrives, everything that was
-- committed at home before has arrived.
-- owner: pods
CREATE TABLE pod_mark (
    pod    text   PRIMARY KEY,
    number bigint NOT NULL
);
