-- 0013_available_prices.sql: the price in a listing is that of the cheapest seat that is free; NULL: none is.
--
-- Prices written before stay until the next change of the event, or `holdfast search reindex`.

ALTER TABLE listing ALTER COLUMN from_price_minor DROP NOT NULL;
ALTER TABLE listing_show ALTER COLUMN from_price_minor DROP NOT NULL;

-- Sold-out events come last in the order by price.
DROP INDEX listings_by_price;
CREATE INDEX listings_by_price ON listing (coalesce(from_price_minor::float8, 'Infinity'::float8), event_id);
