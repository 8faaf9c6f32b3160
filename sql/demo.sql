-- make demo: one release, three tiers, on real data. README.md tells the story of these commands.
.bail on
.load build/diffuse
.mode box

.print
.print 1. Exact averages give children away. School 51, grade 2, reading: all 215 children, then the
.print 214 without one girl (she moved, or a filter left her out). Two averages, one subtraction:

SELECT count(reading) AS children, round(avg(reading), 4) AS average
FROM star WHERE school_id = 51 AND grade = '2'
UNION ALL
SELECT count(reading), round(avg(reading), 4)
FROM star WHERE school_id = 51 AND grade = '2' AND student_id <> 61977;

SELECT round(215 * 586.5349 - 214 * 586.4206) AS her_score;

.print
.print 2. A ledger that protects every student, and three audiences: what one release may cost each,
.print and how much they may ever see.

SELECT dp_init('{"unit":"student"}') IS NOT NULL AS ledger;
SELECT dp_tier('school',   dp_rate(1.0, 1e-6), 8.0, 1e-6) AS tier
UNION ALL SELECT dp_tier('district', dp_rate(0.3, 1e-6), 3.0, 1e-6)
UNION ALL SELECT dp_tier('public',   dp_rate(0.1, 1e-6), 1.0, 1e-6);
SELECT name, round(rate, 6) AS rate, epsilon, delta, accountant FROM dp_tier;

.print
.print 3. Reading in small classes, grade 2: a count and a sum, drawn once from the data at the inner
.print tier. A student counts for at most 800 points, whatever the table says.

SELECT round(dp_count('school', reading, 1, student_id, 'small: count')) AS small_count,
       round(dp_sum('school', reading, 800, student_id, 'small: sum'))   AS small_sum
FROM star WHERE grade = '2' AND class_type = 'small';

.print
.print 4. The outer tiers are made from the inner one. The data is not read again.

SELECT release, round(dp_diffuse(release, 'district')) AS district,
                round(dp_diffuse(release, 'public'))   AS public
FROM dp_publication WHERE tier = 'school';

SELECT release, tier, round(value) AS value, round(stddev, 1) AS stddev,
       round(low) AS low, round(high) AS high
FROM dp_value ORDER BY release, stddev;

.print
.print 5. What the tiers may do with it: the average per tier (post-processing, free), beside the truth,
.print which nobody outside sees.

SELECT s.tier, round(s.value / c.value, 1) AS average,
       (SELECT round(avg(reading), 1) FROM star WHERE grade = '2' AND class_type = 'small') AS truth
FROM dp_value s JOIN dp_value c ON c.tier = s.tier AND c.release = 'small: count'
WHERE s.release = 'small: sum' ORDER BY s.stddev;

.print
.print 6. One release answers for all groups, with one charge. Does a small class help? (Truth beside it.)

SELECT g.key AS class_type, round(g.value, 1) AS average, round(v.stddev, 2) AS stddev,
       (SELECT round(avg(reading), 1) FROM star WHERE grade = '2' AND class_type = g.key) AS truth
FROM json_each((SELECT dp_group_avg('school', class_type, reading, 300, 800, student_id,
                                    '{"name":"by class","keys":["small","reg","reg+A"]}')
                FROM star WHERE grade = '2')) g
JOIN dp_value v ON v.release = 'by class' AND v.key = g.key;

.print
.print 7. Budgets shrink. Asking again for the same name replays the same number and costs nothing.

SELECT round(dp_count('school', reading, 1, student_id, 'small: count')) AS same_count
FROM star WHERE grade = '2' AND class_type = 'small';

SELECT tier, epsilon, round(spent_epsilon, 3) AS spent, round(remaining_epsilon, 3) AS remaining,
       releases, releases_left
FROM dp_budget ORDER BY epsilon DESC;
SELECT dp_verify() AS books;
