-- A program that uses a ledger, from its creation on. Every driver in this directory runs these
-- statements, each of which is one line. test_hosts.py reads the comments under a statement:
--
--   -- value           an expected row; numbers are compared as numbers
--   -- $name           a number that is the same wherever $name stands, for all hosts
--   -- error: message  the statement fails, and the error contains the whole message
--
-- The test ignores what a PRAGMA prints, because it depends on the driver. A comment after a blank
-- line is for readers. Each driver binds the name of its host to the parameter :host.

-- part: create

CREATE TABLE visits(patient INTEGER, minutes REAL);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO visits SELECT i / 2, 1 + i % 7 FROM n;
CREATE TABLE far(place INTEGER PRIMARY KEY, minutes REAL, patient INTEGER);
INSERT INTO far SELECT 1000 * rowid, minutes, patient FROM visits;
SELECT dp_sum('clinic', minutes, 14, 'minutes') FROM visits;
-- error: dp_sum: no privacy ledger for 'story.db' (run SELECT dp_init())
SELECT dp_init('{"unit":"patient"}') LIKE '%/story.db-ledger';
-- 1
SELECT dp_protect('visits', 'patient'), dp_protect('far', 'patient');
-- visits|far
SELECT dp_tier('clinic', 0.004, 8.0, 1e-6);
-- clinic
SELECT dp_tier('region', 0.001, 5.0, 1e-6);
-- region
SELECT dp_tier('public', 0.0002, 3.0, 1e-6, 'gdp');
-- public
SELECT dp_sum('clinic', minutes, 14, 'minutes') FROM visits;
-- $minutes

CREATE VIEW planned AS SELECT round(dp_sigma(0.004, 14), 6) AS sigma;

-- part: go on

SELECT dp_init() LIKE '%/story.db-ledger', dp_tier('clinic', 0.004, 8.0, 1e-6);
-- 1|clinic
SELECT sigma FROM planned;
-- 156.524758
CREATE TEMP VIEW published AS SELECT release, tier, value FROM dp_value;
SELECT value FROM published WHERE release = 'minutes';
-- $minutes

-- A release has a name. Any host that asks for the same name gets the same number at no cost.
SELECT dp_sum('clinic', minutes, 14, 'minutes') FROM visits;
-- $minutes
SELECT dp_count('clinic', minutes, 2, :host) FROM visits;
-- $count
SELECT dp_count('clinic', minutes, 2, :host) FROM visits;
-- $count
SELECT count(*) FROM dp_charge WHERE release = :host;
-- 1
SELECT dp_release('region', 'sum', 'SELECT minutes FROM visits', json_object('name', :host || ' sum', 'clip', 14));
-- $sum
SELECT dp_release('region', 'sum', 'SELECT minutes FROM visits', json_object('name', :host || ' sum', 'clip', 14));
-- $sum

-- This release runs on two threads, because the rowids of the table are far apart.
PRAGMA threads = 1;
SELECT dp_release('region', 'count', 'SELECT minutes FROM far', json_object('name', :host || ' far', 'clip', 2));
-- $far
SELECT dp_release('region', 'count', 'SELECT minutes FROM far', json_object('name', :host || ' far', 'clip', 2));
-- $far

-- A diffusion to an outer tier reads no data, and each tier pays for what it sees.
SELECT dp_diffuse(:host, 'public');
-- $public
SELECT dp_diffuse(:host, 'public');
-- $public
SELECT tier, value FROM dp_value WHERE release = :host ORDER BY tier;
-- clinic|$count
-- public|$public
SELECT abs(value - 1000) < 12 * stddev, low < value, value < high FROM dp_value WHERE release = :host AND tier = 'public';
-- 1|1|1
SELECT abs(value - 3997) < 12 * stddev FROM dp_value WHERE release IN ('minutes', :host || ' sum');
-- 1
-- 1
SELECT tier, round(rate, 4) FROM dp_charge WHERE release IN (:host, :host || ' sum') ORDER BY id;
-- clinic|0.004
-- clinic|0.001
-- region|0.001
-- region|0.0002
-- public|0.0002
SELECT tier, epsilon, spent_rate > 0, releases_left > 0 FROM dp_budget;
-- clinic|8.0|1|1
-- region|5.0|1|1
-- public|3.0|1|1

-- A mistake gives an ordinary error of one sentence, and costs nothing.
SELECT dp_sum('village', minutes, 14, 'village') FROM visits;
-- error: dp_sum: unknown tier 'village' (known tiers: clinic, region, public)
SELECT dp_sum('clinic', minutes, -1, 'less') FROM visits;
-- error: dp_sum: clip must be a number in [1e-150, 1e+150]
SELECT dp_diffuse('niemand', 'public');
-- error: dp_diffuse: unknown release 'niemand' (dp_release lists them)
SELECT dp_tier('clinic', 0.005, 8.0, 1e-6);
-- error: dp_tier: tier 'clinic' exists

-- The program rolls back its transaction. The charge and the number stay.
BEGIN;
INSERT INTO visits VALUES (9999, 5);
SELECT dp_release('public', 'sum', 'SELECT minutes FROM visits', json_object('name', :host || ' undone', 'clip', 14));
-- $undone
ROLLBACK;
SELECT count(*) FROM visits;
-- 1000
SELECT dp_release('public', 'sum', 'SELECT minutes FROM visits', json_object('name', :host || ' undone', 'clip', 14));
-- $undone
SELECT state, count(*) FROM dp_release JOIN dp_charge ON dp_charge.release = dp_release.name WHERE name = :host || ' undone' GROUP BY state;
-- released|3
SELECT dp_verify();
-- ok

-- part: threads

-- Many connections run this part at the same time.
SELECT dp_count('clinic', minutes, 2, :host) FROM visits;
-- $count
SELECT dp_sum('clinic', minutes, 14, 'minutes') FROM visits;
-- $minutes
SELECT dp_diffuse(:host, 'public');
-- $public
SELECT dp_release('region', 'sum', 'SELECT minutes FROM visits', json_object('name', :host || ' sum', 'clip', 14));
-- $sum
SELECT dp_count('clinic', minutes, 2, :host) FROM visits;
-- $count
SELECT dp_verify();
-- ok
SELECT dp_release('region', 'sum', 'SELECT minutes FROM visits', json_object('name', :host || ' more', 'clip', 14));
-- $more
SELECT count(*) FROM dp_charge WHERE release IN (:host, :host || ' sum', :host || ' more');
-- 7
