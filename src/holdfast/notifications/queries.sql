-- Notices: written once per fact and recipient, leased by one worker at a time, ended once.

-- name: add_many
-- The only query that looks up a recipient's address (`reached`). For a guest that is the address they gave,
-- never the generated one of the guest account. Recipients without an address get no notice, and those whose
-- address is neither proved nor paid for get only mails that prove it, a few per hour (limit_proving_mails);
-- a name is written to proved addresses only, because anyone can choose any name. Existing notices stay
-- unchanged.
   INSERT INTO notice (fact_id, kind, channel, account_id, address, name, locale, show_id, number, body,
                       due_at)
   SELECT a.fact_id, a.kind, a.channel, account.id, reached.address,
          CASE WHEN account.is_verified THEN account.name ELSE '' END, coalesce(account.locale, 'en'),
          a.show_id, a.number, a.body::jsonb, now() + a.due_in_s * interval '1 s'
     FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::int[],
                 $8::bigint[], $9::bigint[], $10::text[], $11::float8[]) WITH ORDINALITY
          AS a (fact_id, kind, channel, account_id, email, serial, edition, show_id, number, body, due_in_s,
                place)
     LEFT JOIN ticket_handover AS transfer
            ON a.account_id IS NULL AND transfer.show_id = a.show_id AND transfer.serial = a.serial
           AND transfer.edition = a.edition
    CROSS JOIN LATERAL (SELECT coalesce(a.email, transfer.email) AS email) AS waiting
     LEFT JOIN account_profile AS account
            ON account.id = coalesce(a.account_id,
                                     (SELECT id FROM account_profile WHERE email = waiting.email))
    CROSS JOIN LATERAL (
              SELECT coalesce(account.reached_at, CASE WHEN account.id IS NULL THEN waiting.email END)
                  AS address
          ) AS reached
    WHERE reached.address IS NOT NULL
      AND (a.channel = 'mail' OR account.id IS NOT NULL)
      AND CASE a.kind
          WHEN 'ticket_got' THEN true
          WHEN 'confirm_address' THEN NOT may_be_written_to(account.id)
          ELSE coalesce(may_be_written_to(account.id), false) END
    ORDER BY reached.address, a.place
ON CONFLICT DO NOTHING;

-- name: add_to_person
-- A mail about an account, without a show.
INSERT INTO notice (kind, channel, account_id, address, name, locale, show_id)
VALUES ($1, 'mail', $2, $3, '', $4, 0);

-- name: add_invitation
-- In the language of the account with this address, else in that of the account that invites.
INSERT INTO notice (kind, channel, address, name, locale, show_id, body)
SELECT 'invitation', 'mail', $1, '',
       coalesce((SELECT locale FROM account_profile WHERE email = $1),
                (SELECT locale FROM account_profile WHERE id = $2), 'en'),
       0, jsonb_build_object('invitation_id', $3::bigint);

-- name: person
SELECT id, email, reached_at, is_verified, is_shut, is_guest FROM account_profile WHERE id = $1;

-- name: person_at
SELECT id, is_shut FROM account_profile WHERE email = $1;

-- name: move_of_show
-- No row: the change did not affect the start.
SELECT starts_before, starts_at FROM moved_show WHERE show_id = $1 AND revision = $2;

-- name: organisers_of
SELECT account_id
  FROM show_organiser
  JOIN organisation_member ON organisation_id = organiser_id
 WHERE show_id = $1 AND rights && '{owner,money}';

-- name: people_called
-- Whose turns of that moment ($3) are open now.
SELECT account_id FROM called_person WHERE show_id = $1 AND opening = $2 AND called_at = $3;

-- name: turn_of_person
-- No row: it is over, or they have come in.
SELECT ends_at FROM called_person WHERE show_id = $1 AND opening = $2 AND account_id = $3;

-- name: people_of_show
-- A page of the show's tickets and their owners; no row: the end. It includes tickets that were returned
-- after $4, because their owners reacted to the change that this notice is about.
  SELECT serial, number, owner_email,
         CASE WHEN owner_email IS NULL THEN coalesce(owner_id, booked_by) END AS account_id
    FROM ticket_detail
   WHERE show_id = $1 AND serial > $2 AND (voided_at IS NULL OR voided_at >= $4)
ORDER BY serial
   LIMIT $3;

-- name: lapsing
-- Holds that end in less than $1 seconds. Excluded: holds shorter than twice that (the buyer has just made
-- them), holds with a warning already, holds that end before the buyer could read the mail, and buyers whom
-- we do not write to.
  SELECT booking.show_id, booking.number, booking.owner_id
    FROM payable_booking AS booking JOIN account_profile AS account ON account.id = booking.owner_id
   WHERE booking.state = 'held' AND booking.counts
     AND account.reached_at IS NOT NULL AND may_be_written_to(account.id)
     AND booking.expires_at > now() + least($1, 20) * interval '1 s'
     AND booking.expires_at <= now() + $1 * interval '1 s'
     AND booking.expires_at - booking.opened_at >= 2 * $1 * interval '1 s'
     AND NOT EXISTS (SELECT FROM notice
                      WHERE notice.show_id = booking.show_id AND notice.number = booking.number
                        AND notice.kind = 'hold_lapsing')
ORDER BY booking.expires_at
   LIMIT $2;

-- name: lease_due
-- For engines/leases.py. Notices to a whole audience ($3: channels) wait behind those that one buyer waits
-- for. Kinds that this program does not know ($4) are left to the newer one that wrote them; those that the
-- release before does not know are due in the infinite future (leave_to_newer_workers).
SELECT id
  FROM notice
 WHERE (due_at <= now() OR due_at = 'infinity') AND channel = ANY ($3::text[]) AND kind = ANY ($4::text[])
 ORDER BY kind IN ('show_changed', 'show_cancelled', 'queue_sold_out'),
          nullif(due_at, 'infinity') NULLS FIRST, id
 LIMIT $1
   FOR UPDATE SKIP LOCKED;

-- name: trace
SELECT trace_of_fact(fact_id) FROM notice WHERE id = $1;

-- name: lease_result
-- $2 the new state, $3 the reason of a failure.
state = $2::text::notice_state, reason = $3, ended_at = CASE WHEN $1::float8 IS NULL THEN now() END;

-- name: lease_returned
reason = $1;

-- name: lease_replayed
-- A mail that was sent gets a new Message-ID (round); one that never was sent stays the same mail.
round = leased.round + (leased.state IN ('sent', 'stored'))::int, state = 'queued', ended_at = NULL,
reason = NULL;

-- name: lease_dead
state = 'dead';

-- name: replay_one
leased.id = $1;

-- name: replay_dead
leased.state = 'dead';

-- name: set_aside
-- No sender is configured for these channels. One page at a time, the oldest first.
UPDATE notice
   SET state = 'unsent', due_at = NULL, ended_at = now()
 WHERE id IN (SELECT id
                FROM notice
               WHERE (due_at <= now() OR due_at = 'infinity') AND NOT channel = ANY ($2::text[])
            ORDER BY due_at
               LIMIT $1
                 FOR UPDATE SKIP LOCKED);

-- name: store_message
INSERT INTO stored_message (notice_id, subject, message) VALUES ($1, $2, $3)
ON CONFLICT (notice_id) DO UPDATE
        SET subject = excluded.subject, message = excluded.message, stored_at = now();

-- name: stored_messages
  SELECT notice.id, notice.kind, notice.address, notice.name, stored_message.subject, stored_message.stored_at
    FROM stored_message JOIN notice ON notice.id = stored_message.notice_id
ORDER BY stored_message.stored_at DESC, notice.id DESC
   LIMIT $1;

-- name: stored_message
SELECT message FROM stored_message WHERE notice_id = $1;

-- name: newest
  SELECT *
    FROM notice
   WHERE $1::text = 'all' OR state::text = $1
ORDER BY id DESC
  OFFSET $2 LIMIT $3;

-- name: has_notice
SELECT EXISTS (SELECT FROM notice WHERE id = $1);

-- name: forget_messages
DELETE FROM stored_message WHERE stored_at < now() - $1 * interval '1 h';

-- name: forget_notices
-- Dead notices stay until an operator has handled them.
DELETE FROM notice
 WHERE id IN (SELECT id
                FROM notice
               WHERE ended_at < now() - $1 * interval '1 day' AND state <> 'dead'
            ORDER BY ended_at
               LIMIT $2);

-- name: sender_of_show
-- The name and address an organiser has chosen; no row: none.
SELECT organiser_sender.from_name, organiser_sender.reply_to
  FROM show_organiser
  JOIN organiser_sender USING (organiser_id)
 WHERE show_organiser.show_id = $1;

-- name: house_name
SELECT name FROM house_profile;

-- name: sender
SELECT from_name, reply_to FROM organiser_sender WHERE organiser_id = $1;

-- name: set_sender
INSERT INTO organiser_sender (organiser_id, from_name, reply_to) VALUES ($1, $2, $3)
ON CONFLICT (organiser_id) DO UPDATE SET from_name = excluded.from_name, reply_to = excluded.reply_to;

-- name: giver_and_getter
-- The addresses of one ticket transfer, as far as they are known. A name goes to proved addresses only.
SELECT CASE WHEN getter.is_verified THEN giver.name END AS giver, transfer.email AS getter
  FROM ticket_handover AS transfer
  LEFT JOIN account_profile AS giver ON giver.id = transfer.from_id
  LEFT JOIN account_profile AS getter ON getter.email = transfer.email
 WHERE transfer.show_id = $1 AND transfer.serial = $2 AND transfer.edition = $3;

-- name: count_due
-- Of all channels and kinds, up to the 16 that the workers of a channel take at once.
SELECT count(*)
  FROM ((SELECT FROM notice WHERE due_at <= now() ORDER BY due_at LIMIT 16) UNION ALL
        (SELECT FROM notice WHERE due_at = 'infinity' LIMIT 16)) AS due;
