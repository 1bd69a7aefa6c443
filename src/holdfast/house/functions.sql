-- house/functions.sql: what other folders read of the house.

CREATE OR REPLACE VIEW house_profile AS
SELECT name, currency, timezone FROM house;

-- Who needs a second factor to work: none, admins or staff. At most one row.
CREATE OR REPLACE VIEW house_second_factor AS
SELECT second_factor_for AS who FROM house_rule;
