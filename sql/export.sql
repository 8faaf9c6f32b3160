-- Makes a file for the audience of one tier: a new SQLite file that contains only what its members may see.
--
--   sqlite3 clinic.db ".load build/diffuse" ".parameter set @tier public" \
--           ".parameter set @file public.db" ".read sql/export.sql"
--
-- (or replace @tier and @file in the first statement below). The file must not exist. It gets three
-- tables, which need no extension:
--
--   value the published numbers of the tier and of the tiers outside it, without discarded releases. (The members of a tier may
--                see all tiers outside it.)
--   tier         the terms of these tiers, and what they have spent
--   certificate one JSON document, the part of dp_certificate() about these tiers
--
-- The file leaves out more than the inner tiers and their publications. An inner publication, and every
-- decision that depends on one, costs the inner rate. An outer audience must therefore not learn how many
-- inner releases there are or when they were made. So the file does not contain:
--   the ids of releases, which count all releases (unnamed releases get new numbers);
--   state and created_at, which belong to the first draw, perhaps an inner one;
--   the lattice and its slack: the first tier fixes the lattice, and refinements add slack;
--   the number and hashes of charges, and releases_left, which depends on inner budgets. Times are days in UTC, and rows are in
-- the order of names, because the milliseconds between two releases would reveal how many rows one unit has. If a model was drawn
-- at an inner tier, the noise of its steps, its default learning rate and its stddev follow from the inner tier's rate. The file
-- leaves out these three, and also low and high. The model's rate and the amounts that the tiers have spent are rounded up to
-- four digits. The file still reveals the lattice through the low digits of values, stddev and rate. The lattice shows whether a
-- release was first made at this tier or at an inner tier. Run this script while nobody makes releases, because each statement
-- reads the ledger separately.
.bail on

CREATE TEMP TABLE handover_request(
  tier TEXT NOT NULL,
  file TEXT NOT NULL,
  rate REAL CONSTRAINT "@tier is a tier of this ledger" CHECK (rate IS NOT NULL),
  books TEXT CONSTRAINT "dp_verify() is ok" CHECK (books = 'ok')
);
INSERT INTO handover_request(tier, file, rate, books)
  SELECT tier, file, (SELECT rate FROM dp_tier WHERE name = tier), dp_verify()
  FROM (SELECT @tier AS tier, @file AS file);

ATTACH (SELECT file FROM handover_request) AS handover;

CREATE TEMP TABLE handover_empty(
  tables INTEGER CONSTRAINT "@file is a new file" CHECK (tables = 0)
);
INSERT INTO handover_empty SELECT count(*) FROM handover.sqlite_schema;

-- The tiers that the audience sees: its own tier and the tiers outside it.
CREATE TEMP TABLE handover_tier AS
  SELECT t.* FROM dp_tier t, handover_request q WHERE t.rate <= q.rate;

CREATE TEMP TABLE handover_full AS SELECT dp_certificate() AS document;

-- The releases that the audience has seen, under the names that it may know. Only the certificate contains
-- discarded releases, whose names other releases may have, and it contains days.
CREATE TEMP TABLE handover_release AS
  SELECT id, CASE WHEN name = 'release-' || id
                  THEN '(unnamed ' || row_number() OVER (PARTITION BY name = 'release-' || id
                                                         ORDER BY seen_at, id) || ')'
                  ELSE name END AS name, state = 'discarded' AS discarded, seen_at, inner_model
  FROM (SELECT r.value ->> 'id' AS id, r.value ->> 'name' AS name, r.value ->> 'state' AS state,
               ifnull((SELECT min(published_at) FROM dp_publication WHERE release_id = r.value ->> 'id'
                       AND tier IN (SELECT name FROM handover_tier)),
                      min(p.value ->> 'published_at')) AS seen_at,
               r.value ->> 'kind' = 'sgd' AND EXISTS (
                 SELECT 1 FROM json_each(r.value, '$.publications') q
                 WHERE q.value ->> 'tier' NOT IN (SELECT name FROM handover_tier)) AS inner_model
        FROM handover_full, json_each(document, '$.releases') r, json_each(r.value, '$.publications') p
        WHERE p.value ->> 'tier' IN (SELECT name FROM handover_tier) GROUP BY 1)
  WHERE state <> 'failed';

BEGIN;

CREATE TABLE handover.value(
  release      TEXT NOT NULL,
  tier         TEXT NOT NULL,
  key          TEXT NOT NULL,      -- '' for a release of one number
  component    INTEGER NOT NULL,
  value        REAL NOT NULL,
  stddev       REAL,               -- of the noise in value; NULL for a symbol, which is the key
  low          REAL,               -- 95% interval of the noise around value
  high         REAL,
  published_at TEXT NOT NULL       -- a day in UTC
);
INSERT INTO handover.value
  SELECT r.name, v.tier, v.key, v.component, v.value, iif(inner_model, NULL, v.stddev),
         iif(inner_model, NULL, v.low), iif(inner_model, NULL, v.high), substr(p.published_at, 1, 10) AS day
  FROM dp_value v JOIN dp_publication p ON p.release_id = v.release_id AND p.tier = v.tier
  JOIN handover_release r ON r.id = v.release_id
  WHERE v.tier IN (SELECT name FROM handover_tier)
  ORDER BY day, r.name, v.tier, v.key, v.component;

CREATE TABLE handover.tier(
  name          TEXT NOT NULL PRIMARY KEY,
  rate          REAL NOT NULL,     -- zCDP rate of one release at most
  epsilon       REAL NOT NULL,     -- the whole budget
  delta         REAL NOT NULL,
  accountant    TEXT NOT NULL,
  spent_rate    REAL NOT NULL,     -- the rate that its members have seen
  spent_epsilon REAL NOT NULL,
  releases      INTEGER NOT NULL,
  period        TEXT,              -- 'month': the budget is for each month, and so is what is spent; NULL:
  period_start  TEXT,              -- for ever. First day of the period, and of the next one, in UTC
  period_end    TEXT
);
INSERT INTO handover.tier
  SELECT t.name, t.rate, t.epsilon, t.delta, t.accountant,
         iif(inner_models, CAST(printf('%.3e', b.spent_rate * 1.001) AS REAL), b.spent_rate),
         iif(inner_models, CAST(printf('%.3e', b.spent_epsilon * 1.001) AS REAL), b.spent_epsilon), b.releases,
         t.period, b.period_start, b.period_end
  FROM (SELECT max(inner_model) AS inner_models FROM handover_release), handover_tier t JOIN dp_budget b ON b.tier = t.name ORDER BY t.rate DESC;

-- The statement copies numbers as JSON texts ("->"), so that they keep all their digits.
CREATE TABLE handover.certificate(document TEXT NOT NULL);
INSERT INTO handover.certificate
  WITH full AS (SELECT document FROM handover_full),
  audience(tier) AS (
    SELECT json_group_array(json_object(
      'name', t.value -> 'name', 'rate', t.value -> 'rate', 'epsilon', t.value -> 'epsilon',
      'delta', t.value -> 'delta', 'delta_keys', t.value -> 'delta_keys',
      'accountant', t.value -> 'accountant', 'filter_order', t.value -> 'filter_order',
      'rate_limit', t.value -> 'rate_limit',
      'spent_rate', iif(inner_models, json(printf('%.3e', (t.value ->> 'spent_rate') * 1.001)), t.value -> 'spent_rate'),
      'spent_delta', t.value -> 'spent_delta',
      'spent_epsilon', iif(inner_models, json(printf('%.3e', (t.value ->> 'spent_epsilon') * 1.001)),
                           t.value -> 'spent_epsilon'),
      'releases', t.value -> 'releases', 'period', t.value -> 'period',
      'period_start', t.value -> 'period_start', 'period_end', t.value -> 'period_end',
      'per_period', t.value -> 'per_period', 'all_periods', t.value -> 'all_periods',
      'theorem', t.value -> 'theorem'))
    FROM full, (SELECT max(inner_model) AS inner_models FROM handover_release), json_each(document, '$.tiers') t
    WHERE t.value ->> 'name' IN (SELECT name FROM handover_tier)),
  published(release_id, publications) AS (
    SELECT r.value ->> 'id', json_group_array(json_object(
      'tier', p.value -> 'tier',
      'rate', iif(inner_model, json(printf('%.3e', (p.value ->> 'rate') * 1.001)), p.value -> 'rate'), 'delta', p.value -> 'delta', 'shrink', p.value -> 'shrink',
      'centre', p.value -> 'centre', 'curve', p.value -> 'curve', 'kernel', p.value -> 'kernel',
      'published_at', p.value -> 'published_at'))
    FROM full, json_each(document, '$.releases') r
    JOIN handover_release ON handover_release.id = r.value ->> 'id', json_each(r.value, '$.publications') p
    WHERE p.value ->> 'tier' IN (SELECT name FROM handover_tier) GROUP BY 1),
  seen(releases) AS (
    SELECT json_group_array(json(release)) FROM (
      SELECT json_object(
        'name', h.name, 'kind', r.value -> 'kind', 'mechanism', r.value -> 'mechanism',
        'discarded', json(iif(h.discarded, 'true', 'false')), 'options', CASE WHEN NOT inner_model THEN r.value -> 'options'
                             WHEN r.value ->> '$.options.model.default_eta'
                             THEN json_remove(r.value -> 'options', '$.model.variance', '$.model.eta')
                             ELSE json_remove(r.value -> 'options', '$.model.variance') END,
        'dimension', r.value -> 'dimension', 'weight', r.value -> 'weight',
        'publications', json(publications), 'theorem', r.value -> 'theorem') AS release
      FROM full, json_each(document, '$.releases') r
      JOIN handover_release h ON h.id = r.value ->> 'id' JOIN published ON release_id = h.id
      ORDER BY substr(h.seen_at, 1, 10), h.name, h.discarded DESC, h.seen_at))
  SELECT json_object('certificate', document -> 'certificate', 'audience', q.tier,
                     'ledger', document -> 'ledger', 'tiers', json(audience.tier),
                     'releases', json(releases), 'verify', document -> 'verify')
  FROM full, audience, seen, handover_request q;

COMMIT;

SELECT count(*) || ' values of ' || count(DISTINCT release) || ' releases for ''' || q.tier || ''' in '
       || q.file AS handover
FROM handover_request q LEFT JOIN handover.value;

DETACH handover;
DROP TABLE handover_request;
DROP TABLE handover_empty;
DROP TABLE handover_tier;
DROP TABLE handover_full;
DROP TABLE handover_release;
