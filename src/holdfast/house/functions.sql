-- house/functions.sql: what other folders read of the house.

DROP VIEW IF EXISTS house_profile, house_second_factor CASCADE;

CREATE VIEW house_profile AS
SELECT name, currency, timezone FROM house;

-- Who needs a second factor to work: none, admins or staff. At most one row.
CREATE VIEW house_second_factor AS
SELECT second_factor_for AS who FROM house_rule;
