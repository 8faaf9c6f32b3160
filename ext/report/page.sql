-- The tables that fill page.html. {{#name}} in the page reads the table `name`, in the order of its rows.
-- They are made from the facts of one audience (report.h) and from reader(tier): for whom the page is (NULL: the owner).
-- Tests: tests/report/test_report.py, test_release_series.py, test_cross_tables_page.py

-- What the owner chose for this page: title, publisher, note and order.
CREATE TABLE chosen AS
  SELECT r.tier, json_extract(p.options, '$.title') AS title, json_extract(p.options, '$.publisher') AS publisher,
    json_extract(p.options, '$.note') AS note, ifnull(json_extract(p.options, '$.order'), '[]') AS names
  FROM reader r LEFT JOIN dp_page p ON p.tier IS r.tier;

-- ---- tiers ---------------------------------------------------------------------------------------

-- Each tier with its number (1: the innermost), its color, and its two columns in a table of running totals.
CREATE TABLE place AS
  SELECT number, (number - 1) % 5 + 1 AS color, name AS tier_name, 2 * number - 1 AS each_at, 2 * number AS total_at
  FROM (SELECT name, row_number() OVER (ORDER BY rate DESC) AS number FROM dp_tier) ORDER BY number;

CREATE TABLE budget AS
  WITH spent AS (
    SELECT t.*, b.spent_epsilon, b.releases_left, b.period_start, b.period_end, b.wider_epsilon,
      json_extract(document, '$.wider.unit') AS wider,
      ifnull((SELECT share FROM spending s WHERE s.tier = t.name AND s.period IS b.period_start
              ORDER BY day DESC LIMIT 1), 0.0) AS share,
      iif(t.period IS NOT NULL AND json_extract(c.value, '$.all_periods.periods') > 1,
          json_extract(c.value, '$.all_periods'), NULL) AS past
    FROM dp_tier t JOIN dp_budget b ON b.tier = t.name JOIN certificate
    JOIN json_each(document, '$.tiers') c ON json_extract(c.value, '$.name') = t.name),
  day AS (
    SELECT tier, day, share, period IS NOT lag(period, 1, period) OVER (PARTITION BY tier ORDER BY period, day) AS is_new,
      min(day) OVER (PARTITION BY tier) AS first, max(day) OVER (PARTITION BY tier) AS last, period
    FROM spending),
  step AS (
    SELECT tier, first, last, period, day, printf('H%.1f', 300 * (julianday(day) - julianday(first)) / (julianday(last) - julianday(first)))
      || iif(is_new, 'V63', '') || printf('V%.1f', 63 - 62 * share) AS path
    FROM day WHERE first < last)
  SELECT p.number, p.color, p.tier_name, decimal(epsilon, 4) AS epsilon, one_in(delta) AS delta, guess(epsilon, delta) AS guess,
    period, json_extract(past, '$.periods') AS past_periods,
    wider, decimal(wider_epsilon, 4) AS wider_epsilon,
    decimal(json_extract(past, '$.epsilon'), 4) AS past_epsilon, one_in(json_extract(past, '$.delta')) AS past_delta,
    guess(json_extract(past, '$.epsilon'), json_extract(past, '$.delta')) AS past_guess,
    decimal(100 * share, 3) AS spent, decimal(100 * (1 - share), 3) AS left, printf('%.1f', 300 * share) AS width,
    iif(share > 0 AND spent_epsilon < 9e999, decimal(spent_epsilon, 3), NULL) AS spent_epsilon,
    iif(releases_left IS NULL, NULL, printf('%,d more release%s', releases_left, iif(releases_left = 1, '', 's'))) AS more,
    period_start, period_end,
    (SELECT group_concat(path, '') FROM (SELECT path FROM step WHERE tier = name ORDER BY period, day)) AS history,
    (SELECT first FROM step WHERE tier = name) AS first, (SELECT last FROM step WHERE tier = name) AS last
  FROM spent JOIN place p ON p.tier_name = name ORDER BY p.number;

-- ---- releases ------------------------------------------------------------------------------------

-- The figures of running totals (release/periods.c): the group, whether a figure is a total, and the label and the
-- number of its last period.
CREATE TABLE moment AS
  WITH named AS (SELECT name, keys, iif(json_valid(periods), periods, '[]') AS list FROM dp_release WHERE periods IS NOT NULL),
  listed AS (SELECT name, value AS period, key AS at FROM named, json_each(list)),
  spans AS (
    SELECT DISTINCT v.release, v.key, iif(keys IS NULL, v.key, json_extract(v.key, '$[0]')) AS span,
      iif(keys IS NULL, '', json_extract(v.key, '$[1]')) AS part
    FROM dp_value v JOIN named ON name = v.release),
  dated AS (SELECT *, instr(span, '/') > 0 AS is_total, substr(span, instr(span, '/') + 1) AS period FROM spans)
  SELECT d.*, ifnull(l.at, dense_rank() OVER (PARTITION BY release ORDER BY d.period)) AS at
  FROM dated d LEFT JOIN listed l ON l.name = d.release AND l.period = d.period;
CREATE INDEX moment_key ON moment(release, key);

-- The place of each public key of groups: that in the option keys.
CREATE TABLE key_place AS
  SELECT name AS release, k.value AS key, min(k.key) AS place
  FROM dp_release, json_each(ifnull(json_extract(options, '$.keys'), keys)) k
  WHERE keys IS NOT NULL AND ways IS NULL GROUP BY 1, 2;
CREATE INDEX key_place_key ON key_place(release, key);

-- Each release with the number of its series: the releases that ask the same question about different periods
-- (series.c). 0: no other release asks the same question. Running totals are a series by themselves, with a negative
-- number. `floor`: a number that the statistic, without noise, is never below.
CREATE TABLE described AS
  -- The words of the innermost tier, and what a public kernel did at others.
  WITH told AS (
    SELECT release, release_id, figure, number, instr(figure, '; then ') AS at FROM dp_value JOIN place ON tier_name = tier),
  first AS (SELECT release, release_id, figure, at, min(number) FROM told GROUP BY release, release_id),
  mixed AS (SELECT release, release_id, max(substr(figure, at + 2)) || '; ' AS words FROM told WHERE at GROUP BY release, release_id),
  release AS (
    SELECT f.release AS name, f.release_id,
      figure || iif(at, '', ifnull('; at some tiers ' || substr(words, 1, instr(words, '; ') - 1), '')) AS about
    FROM first f LEFT JOIN mixed m ON m.release = f.release AND m.release_id IS f.release_id),
  sorted AS (
    SELECT r.name, r.kind, r.options, r.keys, r.sql, r.ways, about,
      iif(r.kind LIKE 'ou!_%' ESCAPE '!', substr(r.kind, 4), r.kind) AS sort,
      (SELECT substr(min(published_at), 1, 10) FROM dp_publication p WHERE p.release = r.name) AS day
    FROM release v JOIN dp_release r ON r.name = v.name AND r.id IS v.release_id),
  said AS (
    SELECT *, series_at(name) AS at,
      CASE WHEN sort LIKE '%avg' OR sort LIKE '%quantile' OR sort LIKE '%median' THEN json_extract(options, '$.lo')
           WHEN sort LIKE '%var' OR sort LIKE '%stddev' THEN 0 END AS floor
    FROM sorted),
  grouped AS (
    SELECT *, count(*) OVER question AS releases,
      dense_rank() OVER (ORDER BY series_stem(name), kind, options, keys, series_question(sql)) AS rank
    FROM said WINDOW question AS (PARTITION BY series_stem(name), kind, options, keys, series_question(sql)))
  SELECT name AS release, about, at, floor, series_title(name) AS title, releases, ways IS NOT NULL AS is_ways,
    sort LIKE '%count%' OR sort LIKE '%histogram%' AS is_count,
    day || ifnull(' · corrects a figure of ' || (SELECT c.day FROM corrected c WHERE c.release = name), '') AS day,
    CASE WHEN ways IS NOT NULL THEN 0 WHEN name IN (SELECT release FROM moment) THEN -rank WHEN releases > 1 THEN rank
         ELSE 0 END AS series
  FROM grouped;
CREATE INDEX described_release ON described(release);

-- Each published value. The key of a published category in dp_value is the text of the category, which may differ between
-- tiers: here, the key is ''.
CREATE TABLE figure AS
  SELECT v.release, p.number AS tier, p.color, iif(v.stddev IS NULL AND v.key <> '' AND v.key = v.display, '', v.key) AS key,
    v.component, v.value, v.low, v.high, v.display,
    iif(v.stddev IS NULL AND v.key <> '' AND v.key = v.display, '', v.label) AS label,
    m.at AS moment, m.is_total, m.part, m.period, k.place
  FROM dp_value v JOIN place p ON p.tier_name = v.tier LEFT JOIN moment m ON m.release = v.release AND m.key = v.key
  LEFT JOIN key_place k ON k.release = v.release AND k.key = ifnull(m.part, v.key);
CREATE INDEX figure_release ON figure(release, tier, key);

-- The blocks of the page: a table of all single numbers; a series; running totals; a release of groups; cross tables.
-- A block has one part, or, as a series of groups, one for each release. `lowest` and `highest` contain the intervals of
-- all numbers of a series, or of a release.
CREATE TABLE shown AS
  WITH ordered AS (SELECT key, value FROM chosen, json_each(names)),
  one AS (
    SELECT f.release, max(key <> '' OR component > 0) AS is_group, max(ifnull(floor, min(low)), min(low)) AS low,
      max(high) AS high, count(DISTINCT tier) AS tiers
    FROM figure f JOIN described d ON d.release = f.release GROUP BY f.release),
  ranged AS (
    SELECT d.*, tiers, max(is_group) OVER one AS is_group, min(low) OVER one AS lowest, max(high) OVER one AS highest,
      at = max(at) OVER one AS is_last
    FROM one JOIN described d ON d.release = one.release
    WINDOW one AS (PARTITION BY d.series, iif(d.series, '', d.release)))
  SELECT *, iif(is_count, max(lowest, 0), lowest) AS bottom,
    CASE WHEN is_ways THEN 'tables ' || release WHEN series THEN 'series ' || series WHEN is_group THEN 'groups ' || release
         ELSE 'numbers' END AS block_id,
    CASE WHEN is_ways THEN 'tables ' || release WHEN series < 0 OR (series AND NOT is_group) THEN 'series ' || series
         WHEN is_group THEN 'groups ' || release ELSE 'numbers' END AS part_id,
    (SELECT min(key) FROM ordered WHERE value = release OR (series > 0 AND value = title)) AS position
  FROM ranged;
CREATE INDEX shown_release ON shown(release);

-- Each figure with its line in the table of its part, and its time in its series.
CREATE TABLE reading AS
  SELECT s.part_id, s.block_id, s.release, s.series, s.is_group, s.bottom, s.lowest, s.highest, s.tiers, s.is_count, s.about, s.day,
    f.tier, f.color, f.key, f.component, f.value, f.low, f.high, f.display, f.label, f.part, f.is_total,
    iif(s.series < 0, f.moment, s.at) AS time, ifnull(f.period, series_period(s.release)) AS period,
    iif(f.part IS NULL, f.component || ' ' || f.key, f.is_total || ' ' || f.part) AS trend,
    iif(s.series < 0, 2 * f.tier - 1 + f.is_total, f.tier) AS slot,
    dense_rank() OVER (PARTITION BY s.part_id ORDER BY iif(s.is_group, 0, ifnull(s.position, 1e9)),
      iif(s.is_group OR s.series, '', s.day), iif(s.series > 0, s.at, 0), f.moment, f.place, ifnull(f.part, f.key) + 0,
      ifnull(f.part, f.key), f.component, iif(s.is_group, '', s.release)) AS line
  FROM figure f JOIN shown s ON s.release = f.release WHERE NOT s.is_ways;
CREATE INDEX reading_line ON reading(part_id, line, slot);
CREATE INDEX reading_trend ON reading(block_id, trend, tier, time);

-- ---- heat maps -----------------------------------------------------------------------------------

-- The tables of two or three attributes: those of cross tables that are inside no other table of the release, because these
-- have all other tables as margins, or as margins of margins; and groups whose keys are arrays.
CREATE TABLE attribute(grid_id, at, name, PRIMARY KEY (grid_id, at));
CREATE TABLE level(grid_id, at, label, place, PRIMARY KEY (grid_id, at, label));
CREATE TABLE has(grid_id, key, at, label, place, PRIMARY KEY (grid_id, key, at));
CREATE TABLE grid_release(grid_id PRIMARY KEY, release, part_id, has_margins, number);

INSERT INTO grid_release
  WITH one AS (
    SELECT r.name, t.key AS number, (SELECT json_group_array(a.value) FROM json_each(t.value) a WHERE a.type = 'text') AS attributes
    FROM dp_release r, json_each(r.ways) t WHERE r.name IN (SELECT release FROM shown)),
  sized AS (SELECT *, json_array_length(attributes) AS size FROM one),
  largest AS (
    SELECT name, min(number) AS number, attributes FROM sized a
    WHERE NOT EXISTS (SELECT 1 FROM sized b WHERE b.name = a.name AND b.size > a.size AND NOT EXISTS (
      SELECT 1 FROM json_each(a.attributes) x WHERE x.value NOT IN (SELECT value FROM json_each(b.attributes))))
    GROUP BY name, attributes)
  SELECT number || ' ' || name, name, 'tables ' || name, 1, number FROM largest;
INSERT INTO attribute
  SELECT g.grid_id, row_number() OVER (PARTITION BY g.grid_id ORDER BY a.key) - 1, a.value
  FROM grid_release g JOIN dp_release r ON r.name = g.release, json_each(r.ways, '$[' || g.number || ']') a WHERE a.type = 'text';
INSERT INTO level
  SELECT grid_id, at, k.value, k.key FROM grid_release g JOIN attribute a USING (grid_id) JOIN dp_release r ON r.name = g.release,
    json_each(r.keys) o, json_each(o.value) k WHERE o.key = a.name;
INSERT INTO has
  SELECT g.grid_id, v.key, l.at, l.label, l.place
  FROM (SELECT DISTINCT release, key FROM dp_value) v JOIN grid_release g ON g.release = v.release, json_each(v.key) e
  JOIN attribute a ON a.grid_id = g.grid_id AND a.name = e.key
  JOIN level l ON l.grid_id = g.grid_id AND l.at = a.at AND l.label = e.value;

INSERT INTO grid_release
  SELECT 'groups ' || release, release, part_id, 0, 0 FROM reading WHERE is_group AND series >= 0
  GROUP BY release HAVING max(component) = 0
  AND min(CASE WHEN key LIKE '[%' AND json_valid(key) THEN json_array_length(key) ELSE 0 END) BETWEEN 2 AND 3
  AND min(CASE WHEN key LIKE '[%' AND json_valid(key) THEN json_array_length(key) END)
    = max(CASE WHEN key LIKE '[%' AND json_valid(key) THEN json_array_length(key) END);
CREATE TEMP TABLE element AS
  SELECT g.grid_id, r.key, e.key AS at, ifnull(e.value, 'none') AS label, min(f.place) AS place
  FROM grid_release g JOIN (SELECT DISTINCT release, key FROM reading) r ON r.release = g.release
  JOIN figure f ON f.release = r.release AND f.key = r.key, json_each(r.key) e WHERE NOT g.has_margins GROUP BY 1, 2, 3;
INSERT INTO attribute SELECT DISTINCT grid_id, at, NULL FROM element;
INSERT INTO level
  SELECT grid_id, at, label, row_number() OVER (PARTITION BY grid_id, at ORDER BY min(place), label + 0, label) - 1
  FROM element GROUP BY grid_id, at, label;
INSERT INTO has SELECT e.grid_id, e.key, e.at, e.label, l.place FROM element e JOIN level l USING (grid_id, at, label);

-- The keys of one attribute stand side by side: those of the last one, if they are at most 12, or of the one with the fewest.
-- A larger table is not printed as such.
CREATE TABLE grid AS
  WITH size AS (SELECT grid_id, at, count(*) AS keys, count(*) <= 12 AS fits FROM level GROUP BY 1, 2),
  side AS (SELECT *, row_number() OVER (PARTITION BY grid_id ORDER BY fits DESC, iif(fits, -at, keys)) AS best,
    max(at) OVER (PARTITION BY grid_id) + 1 AS attributes FROM size),
  whole AS (SELECT *, (SELECT count(DISTINCT row) FROM (SELECT group_concat(place) AS row FROM (
      SELECT key, place FROM has h WHERE h.grid_id = s.grid_id AND h.at <> s.at ORDER BY key, h.at) GROUP BY key)) AS rows
    FROM side s WHERE best = 1)
  SELECT grid_id, part_id, release, has_margins, number, at AS side, fits AND (rows + 1) * keys <= 400 AS fits,
    (SELECT group_concat(name, ' × ') FROM (SELECT name FROM attribute a WHERE a.grid_id = g.grid_id ORDER BY at)) AS caption
  FROM grid_release g JOIN whole USING (grid_id)
  WHERE has_margins OR (fits AND (rows + 1) * keys <= 400);
CREATE INDEX grid_part ON grid(part_id);

-- The row and the column of each key. An attribute that a key does not have is summed over: 'all'.
CREATE TABLE spot AS
  WITH keyed AS (
    SELECT g.grid_id, g.side, v.key FROM grid g JOIN (SELECT DISTINCT release, key FROM figure) v ON v.release = g.release
    WHERE g.fits AND NOT EXISTS (SELECT 1 FROM json_each(v.key) e WHERE g.has_margins
      AND e.key NOT IN (SELECT name FROM attribute a WHERE a.grid_id = g.grid_id)))
  SELECT grid_id, key,
    (SELECT ifnull(group_concat(printf('%08d', ifnull(h.place, 99999999)), ''), '') FROM (SELECT h.place FROM attribute a
      LEFT JOIN has h ON h.grid_id = a.grid_id AND h.at = a.at AND h.key = k.key
      WHERE a.grid_id = k.grid_id AND a.at <> k.side ORDER BY a.at) h) AS row_at,
    (SELECT group_concat(ifnull(h.label, 'all'), ', ') FROM (SELECT h.label FROM attribute a
      LEFT JOIN has h ON h.grid_id = a.grid_id AND h.at = a.at AND h.key = k.key
      WHERE a.grid_id = k.grid_id AND a.at <> k.side ORDER BY a.at) h) AS row_label,
    (SELECT count(*) FROM has h WHERE h.grid_id = k.grid_id AND h.key = k.key AND h.at <> k.side) AS row_size,
    (SELECT count(*) - 1 FROM attribute a WHERE a.grid_id = k.grid_id) AS row_whole,
    (SELECT h.place FROM has h WHERE h.grid_id = k.grid_id AND h.key = k.key AND h.at = k.side) AS column_at
  FROM keyed k;
CREATE INDEX spot_row ON spot(grid_id, row_at, column_at);

CREATE TABLE matrix AS
  SELECT g.part_id, g.grid_id, p.number, p.color, p.tier_name, g.caption, g.has_margins, g.fits
  FROM grid g JOIN place p WHERE EXISTS (SELECT 1 FROM figure f WHERE f.release = g.release AND f.tier = p.number)
  ORDER BY p.number, g.number;
CREATE TABLE matrix_head AS
  SELECT g.grid_id, l.label, l.place FROM grid g JOIN level l ON l.grid_id = g.grid_id AND l.at = g.side ORDER BY g.grid_id, l.place;
CREATE INDEX matrix_head_grid ON matrix_head(grid_id);
CREATE TABLE matrix_row AS
  SELECT DISTINCT grid_id, row_at, iif(row_size, row_label, NULL) AS row_label FROM spot ORDER BY grid_id, row_at;
CREATE INDEX matrix_row_grid ON matrix_row(grid_id);

-- The cells with their shade from 0 to 9, within the cells of one tier; z: the interval includes 0; empty: a margin.
CREATE TABLE matrix_cell AS
  WITH filled AS (
    SELECT s.grid_id, s.row_at, s.column_at, f.tier, f.display, f.value, f.low <= 0 AND f.high >= 0 AS has_zero,
      s.column_at IS NOT NULL AND s.row_size = s.row_whole AS is_inner, d.is_count
    FROM spot s JOIN grid g USING (grid_id) JOIN figure f ON f.release = g.release AND f.key = s.key
    JOIN described d ON d.release = g.release),
  shaded AS (
    SELECT *, max(iif(is_inner, value, NULL)) OVER tier AS top,
      iif(is_count, 0, min(iif(is_inner AND NOT ifnull(has_zero, 0), value, NULL)) OVER tier) AS base
    FROM filled WINDOW tier AS (PARTITION BY grid_id, tier)),
  spots AS (
    SELECT r.grid_id, r.row_at, h.place AS column_at, h.label FROM matrix_row r JOIN matrix_head h USING (grid_id)
    UNION ALL SELECT r.grid_id, r.row_at, NULL, 'all' FROM matrix_row r JOIN grid g USING (grid_id) WHERE g.has_margins)
  SELECT s.grid_id, s.row_at, p.number, s.label, c.display,
    CASE WHEN has_zero THEN 'z' WHEN is_inner AND top > base
      THEN 'h' || CAST(max(0, min(9.99, 10 * (c.value - base) / (top - base))) AS INT) WHEN is_inner THEN 'h0' END AS shade
  FROM spots s JOIN place p LEFT JOIN shaded c ON c.grid_id = s.grid_id AND c.row_at = s.row_at AND c.column_at IS s.column_at
    AND c.tier = p.number
  ORDER BY s.grid_id, s.row_at, s.column_at IS NULL, s.column_at;
CREATE INDEX matrix_cell_row ON matrix_cell(grid_id, row_at, number);

-- ---- lists ---------------------------------------------------------------------------------------

-- The parts that are a list of lines: all but heat maps. A list of single numbers has no scale of its own, and running totals
-- and all releases of a series of groups but the last have no charts, because the trends show the same intervals.
CREATE TABLE part AS
  WITH one AS (
    SELECT s.*, iif(s.part_id = 'numbers', NULL, scale_low(bottom, highest)) AS scale_from,
      iif(s.part_id = 'numbers', NULL, scale_high(bottom, highest)) AS scale_to,
      (SELECT max(line) FROM reading r WHERE r.part_id = s.part_id) AS lines
    FROM shown s GROUP BY s.part_id)
  SELECT block_id, part_id, iif(series > 0 AND is_group, release, NULL) AS heading, day AS part_day,
    part_id NOT IN (SELECT part_id FROM grid) AS is_list, series < 0 AS is_running,
    iif(part_id = 'numbers', 'Release', '') AS first_head,
    series >= 0 AND (NOT is_group OR NOT series OR is_last) AS has_charts,
    scale_from, scale_to, iif(scale_from IS NULL, NULL, scale_end(scale_from)) AS low_end,
    iif(scale_to IS NULL, NULL, scale_end(scale_to)) AS high_end, iif(is_group AND lines > 100, lines - 100, 0) AS left_out
  FROM one ORDER BY block_id, iif(series > 0, at, 0), part_id;
CREATE INDEX part_block ON part(block_id);

CREATE TABLE line AS
  WITH one AS (SELECT r.part_id, r.line, CASE WHEN r.series < 0 THEN r.period || iif(r.part = '', '', ', ' || r.part) WHEN r.is_group THEN r.label
      ELSE r.release END AS head,
    CASE WHEN r.is_group THEN NULL WHEN r.series THEN r.day ELSE r.about || ' · ' || r.day END AS note, p.has_charts,
    iif(p.scale_from IS NULL, iif(r.tiers > 1, r.bottom, NULL), p.scale_from) AS low,
    iif(p.scale_from IS NULL, r.highest, p.scale_to) AS high, max(r.low) IS NOT NULL AS has_intervals
  FROM reading r JOIN part p USING (part_id) WHERE p.is_list AND (p.left_out = 0 OR r.line <= 100)
  GROUP BY r.part_id, r.line)
  SELECT *, has_charts AND has_intervals AND low < high AND low > -9e999 AND high < 9e999 AS has_bars FROM one ORDER BY part_id, line;
CREATE INDEX line_part ON line(part_id);

-- A cell for each tier; for running totals, one for the period and one for the total.
CREATE TABLE cell AS
  WITH slots AS (SELECT 0 AS is_running, number AS slot FROM place UNION ALL SELECT 1, each_at FROM place UNION ALL SELECT 1, total_at FROM place)
  SELECT l.part_id, l.line, r.display FROM line l JOIN part p USING (part_id) JOIN slots s USING (is_running)
  LEFT JOIN reading r ON r.part_id = l.part_id AND r.line = l.line AND r.slot = s.slot ORDER BY l.part_id, l.line, s.slot;
CREATE INDEX cell_line ON cell(part_id, line);

-- The chart of a line: the interval of each tier, with a mark at the value.
CREATE TABLE bar AS
  SELECT r.part_id, r.line, r.color,
    'M' || CAST(round(1 + 197 * min(1, max(0, (r.low - l.low) / (l.high - l.low)))) AS INT) || ' ' || (16 * r.tier - 8) ||
    'H' || CAST(round(1 + 197 * min(1, max(0, (r.high - l.low) / (l.high - l.low)))) AS INT) ||
    'M' || CAST(round(1 + 197 * min(1, max(0, (r.value - l.low) / (l.high - l.low)))) AS INT) || ' ' || (16 * r.tier - 14) || 'v12' AS path
  FROM line l JOIN reading r USING (part_id, line)
  WHERE l.has_bars AND r.low IS NOT NULL ORDER BY r.part_id, r.line, r.tier;
CREATE INDEX bar_line ON bar(part_id, line);

-- ---- how the figures of a series change over time ------------------------------------------------

-- A chart for each number of a series, up to 24, with a line for each tier. The data of the page has the others.
CREATE TABLE trend AS
  WITH span AS (
    SELECT block_id, min(time) AS first, max(time) AS last FROM reading WHERE series <> 0 AND low IS NOT NULL GROUP BY 1 HAVING first < last),
  one AS (
    SELECT r.block_id, r.trend, min(line) AS line, s.first, s.last, max(bottom, min(low)) AS bottom, max(high) AS top,
      CASE WHEN part IS NULL THEN label WHEN is_total THEN part || iif(part = '', '', ', ') || 'total so far'
           ELSE part || iif(part = '', '', ', ') || 'each period' END AS trend_label
    FROM reading r JOIN span s USING (block_id) WHERE low IS NOT NULL GROUP BY 1, 2),
  ranked AS (SELECT *, row_number() OVER (PARTITION BY block_id ORDER BY line, trend) AS rank FROM one)
  SELECT *, scale_low(bottom, top) AS low, scale_high(bottom, top) AS high, scale_end(scale_low(bottom, top)) AS low_end,
    scale_end(scale_high(bottom, top)) AS high_end,
    (SELECT period FROM reading r WHERE r.block_id = k.block_id ORDER BY time LIMIT 1) AS start,
    (SELECT period FROM reading r WHERE r.block_id = k.block_id ORDER BY time DESC LIMIT 1) AS end
  FROM ranked k WHERE rank <= 24 AND scale_low(bottom, top) IS NOT NULL ORDER BY block_id, rank;
CREATE INDEX trend_block ON trend(block_id);

CREATE TABLE trend_point AS
  SELECT r.block_id, r.trend, r.tier, r.color, r.time,
    CAST(round(8 + 284.0 * (r.time - t.first) / (t.last - t.first) + 3 * (r.tier - (max(r.tier) OVER (PARTITION BY r.block_id) + 1) / 2.0))
      AS INT) AS x,
    CAST(round(71 - 70 * min(1, max(0, (r.value - t.low) / (t.high - t.low)))) AS INT) AS y,
    CAST(round(71 - 70 * min(1, max(0, (r.low - t.low) / (t.high - t.low)))) AS INT) AS from_y,
    CAST(round(71 - 70 * min(1, max(0, (r.high - t.low) / (t.high - t.low)))) AS INT) AS to_y
  FROM trend t JOIN reading r USING (block_id, trend) WHERE r.low IS NOT NULL;
CREATE INDEX trend_point_at ON trend_point(block_id, trend, tier, time);
CREATE TABLE trend_line AS
  SELECT block_id, trend, color,
    (SELECT 'M' || group_concat(x || ' ' || y, 'L') FROM (SELECT x, y FROM trend_point q WHERE q.block_id = p.block_id
      AND q.trend = p.trend AND q.tier = p.tier ORDER BY time)) AS path,
    (SELECT group_concat('M' || x || ' ' || from_y || 'V' || to_y, '') FROM (SELECT x, from_y, to_y FROM trend_point q
      WHERE q.block_id = p.block_id AND q.trend = p.trend AND q.tier = p.tier ORDER BY time)) AS intervals
  FROM trend_point p GROUP BY block_id, trend, tier ORDER BY block_id, trend, tier;
CREATE INDEX trend_line_at ON trend_line(block_id, trend);

-- ---- the blocks in their order -------------------------------------------------------------------

CREATE TABLE block AS
  SELECT s.block_id, CASE WHEN s.block_id = 'numbers' THEN NULL WHEN s.series > 0 THEN s.title ELSE s.release END AS title, s.about AS about_block,
    iif(s.series > 0, s.releases, NULL) AS releases, iif(s.series, NULL, s.day) AS block_day,
    (SELECT period FROM reading r WHERE r.block_id = s.block_id AND s.series ORDER BY time LIMIT 1) AS first_period,
    (SELECT period FROM reading r WHERE r.block_id = s.block_id AND s.series ORDER BY time DESC LIMIT 1) AS last_period,
    EXISTS (SELECT 1 FROM trend t WHERE t.block_id = s.block_id) AS has_trends
  FROM shown s GROUP BY s.block_id
  ORDER BY ifnull(min(s.position), 1e9), s.is_ways, s.is_group, s.series > 0, min(s.day), title, s.series;

-- What clipping did in the releases that counted the clipped units. The releases of a series share a line, which has the advice
-- (what follows a colon) if the advice is the same for all of them. A line gives the numbers of the innermost tier on the page,
-- because outer tiers have the same numbers with more noise.
CREATE TABLE clipped AS
  WITH said AS (
    SELECT c.*, d.series, d.title, min(p.number), substr(words, 1, instr(words || ':', ':') - 1) AS fact
    FROM clipping c JOIN place p ON p.tier_name = c.tier JOIN described d ON d.release = c.release GROUP BY c.release)
  SELECT iif(series > 0, title, release) AS clipped_name,
    iif(series > 0, printf('%d release%s', count(*), iif(count(*) = 1, '', 's')), NULL) AS clipped_releases,
    CASE WHEN min(low) IS NULL THEN '' WHEN max(high) > min(low) THEN printf('about %d%% to %d%% ', min(low), max(high))
      ELSE printf('about %d%% ', min(low)) END || iif(min(words) = max(words), words, fact)
      || iif(count(*) = 1, ifnull('; ' || min(amount), ''), '') AS clipped_words
  FROM said GROUP BY series, iif(series, '', release), fact ORDER BY clipped_name, series, min(release);

-- ---- facts for an auditor ------------------------------------------------------------------------

CREATE TABLE fact_text AS
  SELECT 'Ledger' AS term, json_extract(document, '$.ledger.id') || ', of ' || json_extract(document, '$.ledger.created_at')
    || ', format ' || json_extract(document, '$.ledger.format') AS text FROM certificate
  UNION ALL SELECT 'What is protected', iif(json_extract(document, '$.ledger.protects') = 'row', 'each row',
    'all rows of each ' || ifnull(json_extract(document, '$.ledger.unit'), 'unit')) || ', ' ||
    iif(json_extract(document, '$.ledger.adjacency') = 'replace', 'replaced by others', 'added or removed') FROM certificate
  UNION ALL SELECT 'Also protected', 'all rows of each ' || json_extract(document, '$.wider.unit') || ', which counts as at most '
    || printf('%.15g', json_extract(document, '$.wider.factor')) || ' of them: ' || json_extract(document, '$.wider.theorem')
    FROM certificate WHERE json_extract(document, '$.wider.unit') IS NOT NULL
  UNION ALL SELECT 'Policy', json_extract(document, '$.policy') FROM certificate WHERE json_type(document, '$.policy') <> 'array'
  UNION ALL SELECT 'Tables of the policy', json_extract(p.value, '$.table_name') ||
    CASE WHEN json_extract(p.value, '$.role') = 'public' THEN ': public, anybody may know it'
      WHEN json_extract(p.value, '$.unit_column') IS NULL THEN ': each row is protected'
      WHEN json_extract(p.value, '$.parent') IS NULL THEN ': a row belongs to the one in ' || json_extract(p.value, '$.unit_column')
      ELSE ': a row belongs to the one of its row in ' || json_extract(p.value, '$.parent') || ', by '
        || json_extract(p.value, '$.unit_column') END
    FROM certificate, json_each(document, '$.policy') p WHERE json_type(document, '$.policy') = 'array'
  UNION ALL SELECT * FROM (SELECT DISTINCT 'Public when read, protected now', json_extract(r.value, '$.name') || ' read ' || t.key ||
    ' while that table was public: its rows are not protected in these figures'
    FROM certificate, json_each(document, '$.releases') r, json_each(r.value, '$.tables') t
    WHERE json_type(r.value, '$.tables') = 'object' AND t.value = 'public when read' ORDER BY 2)
  UNION ALL SELECT 'The books', 'dp_verify(): ' || json_extract(document, '$.verify') FROM certificate
  UNION ALL SELECT * FROM (SELECT DISTINCT 'Accountants', json_extract(t.value, '$.accountant') || ': ' || json_extract(t.value, '$.theorem')
    FROM certificate, json_each(document, '$.tiers') t ORDER BY 2)
  UNION ALL SELECT * FROM (SELECT DISTINCT 'Mechanisms', json_extract(r.value, '$.mechanism') || ': ' || json_extract(r.value, '$.theorem.rate')
    FROM certificate, json_each(document, '$.releases') r ORDER BY 2)
  UNION ALL SELECT * FROM (SELECT DISTINCT 'Several tiers', json_extract(r.value, '$.theorem.tiers')
    FROM certificate, json_each(document, '$.releases') r ORDER BY 2)
  UNION ALL SELECT * FROM (SELECT DISTINCT 'Shrunk values', json_extract(r.value, '$.theorem.shrink')
    FROM certificate, json_each(document, '$.releases') r ORDER BY 2)
  UNION ALL SELECT * FROM (SELECT DISTINCT 'Private keys', json_extract(r.value, '$.theorem.keys')
    FROM certificate, json_each(document, '$.releases') r ORDER BY 2)
  UNION ALL SELECT 'Last charge', json_extract(document, '$.charges') || ' charges, the last with hash ' || json_extract(document, '$.last_hash')
    FROM certificate
  UNION ALL SELECT 'Last seal', json_extract(document, '$.last_seal') FROM certificate;
DELETE FROM fact_text WHERE text IS NULL;
CREATE TABLE fact AS SELECT term FROM fact_text GROUP BY term ORDER BY min(rowid);

-- ---- the page ------------------------------------------------------------------------------------

-- What the page says once. Tables are shown as lists on a narrow screen, or always if there are more columns than a wide screen
-- has room for.
CREATE TABLE page AS
  WITH rows AS (
    SELECT char(10) || '{"release":' || json_value(release) || ',"tier":' || json_value(tier) || ',"key":' || json_value(key)
      || ',"component":' || json_value(component) || ',"value":' || json_value(value) || ',"stddev":' || json_value(stddev)
      || ',"low":' || json_value(low) || ',"high":' || json_value(high) || ',"display":' || json_value(display)
      || ',"label":' || json_value(label) || '}' AS json
    FROM dp_value ORDER BY release, tier, key, component),
  block AS (SELECT '[' || ifnull(group_concat(json, ','), '') || char(10) || ']' AS data FROM rows)
  SELECT tier AS reader, ifnull(title, ifnull(tier, 'All tiers')) AS page_title, ifnull(publisher, 'Privacy report') AS publisher,
    note AS note_of_owner,
    json_extract(document, '$.ledger.protects') = 'row' AS by_row, json_extract(document, '$.ledger.adjacency') = 'replace' AS is_replaced,
    iif(json_extract(document, '$.ledger.protects') = 'row', 'row', ifnull(json_extract(document, '$.ledger.unit'), 'unit')) AS unit,
    iif((SELECT count(*) FROM place) > iif(EXISTS (SELECT 1 FROM part WHERE is_running), 3, 4), 'all', 'screen and (max-width:46rem)') AS narrow,
    16 * (SELECT count(*) FROM place) AS chart_height, (SELECT count(*) > 1 FROM place) AS has_tiers,
    EXISTS (SELECT 1 FROM budget WHERE history IS NOT NULL) AS has_history, EXISTS (SELECT 1 FROM clipped) AS has_clipped,
    EXISTS (SELECT 1 FROM budget) AS has_budgets,
    EXISTS (SELECT 1 FROM grid WHERE fits) AS has_grids, data, sha256(data) AS hash
  FROM chosen, certificate, block;
