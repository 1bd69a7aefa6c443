-- 0017_card_limits.sql: seats of a card are counted from its payments.

-- removes: card_count. A counter beside the payments could only leak; only functions read it, and they change
-- together with this step.
DROP TABLE card_count;
CREATE INDEX payments_by_card ON payment (show_id, card) WHERE card IS NOT NULL;
