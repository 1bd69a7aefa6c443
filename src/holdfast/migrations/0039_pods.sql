-- 0039_pods.sql: shows whose sale is in another database, a pod. Without pods these tables are empty.
-- works with: 0.1.0

-- One row: which database this is. The home database has the empty name.
-- owner: pods
CREATE TABLE pod_identity (
    is_only boolean PRIMARY KEY DEFAULT true,
    name    text    NOT NULL DEFAULT '',
    CONSTRAINT a_database_is_one_pod CHECK (is_only)
);
INSERT INTO pod_identity DEFAULT VALUES;

-- The pods that were added, in the home database.
-- owner: pods
CREATE TABLE pod (
    name            text        PRIMARY KEY,
    number          int         NOT NULL UNIQUE,             -- its share of the ids: see pods/setup.py
    takes_new_shows boolean     NOT NULL DEFAULT true,
    added_at        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT home_is_number_0 CHECK (number > 0)
);

-- The directory: which pod owns a show, decided in the home database and replicated to every pod. A show
-- without a row is the home database's. The epoch grows with every move.
-- owner: pods
CREATE TABLE show_pod (
    show_id    bigint      PRIMARY KEY,
    pod        text        NOT NULL,
    epoch      bigint      NOT NULL DEFAULT 1,
    changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX shows_moved_lately ON show_pod (changed_at);

-- The epoch whose rows this database has; a show without a row: epoch 1. Negative: fenced, because the show
-- is being moved away or was moved. A show is sold here if this is the epoch of the directory, and the
-- directory names this database: show_is_here().
-- owner: pods
CREATE TABLE show_copy (
    show_id     bigint      PRIMARY KEY,
    epoch       bigint      NOT NULL,
    moves_until bigint      NOT NULL DEFAULT 0,              -- moves up to this id came with the show: their
    facts_until bigint      NOT NULL DEFAULT 0,              -- facts are elsewhere; of an earlier stay here
    changed_at  timestamptz NOT NULL DEFAULT now()
);
