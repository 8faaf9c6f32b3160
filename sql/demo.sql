-- `make demo` runs this script, which publishes real data to three audiences. README.md explains
-- these commands.
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
.print 2. A ledger that protects every student, and three audiences. The budget of each, an epsilon at
.print delta 1e-6, is enough for 24 releases: two a month for a year.

SELECT dp_init('{"unit":"student"}') AS ledger;
SELECT dp_protect('star', 'student_id') AS protected;
SELECT dp_tier('school',   dp_rate(8.0, 1e-6, 24), 8.0, 1e-6, 'gdp') AS tier
UNION ALL SELECT dp_tier('district', dp_rate(3.0, 1e-6, 24), 3.0, 1e-6, 'gdp')
UNION ALL SELECT dp_tier('public',   dp_rate(1.0, 1e-6, 24), 1.0, 1e-6, 'gdp');
SELECT tier, epsilon, releases_left FROM dp_budget ORDER BY epsilon DESC;

.print
.print 3. Reading in small classes, grade 2: how many students, and their average, drawn once from the
.print data at the inner tier. A score counts as 300 to 800 points, whatever the table says.

SELECT round(dp_release('school', 'count', 'SELECT reading FROM star WHERE grade = ''2'' AND class_type = ''small''',
                        '{"name":"small: students","clip":1}'), 1) AS students,
       round(dp_release('school', 'avg', 'SELECT reading FROM star WHERE grade = ''2'' AND class_type = ''small''',
                        '{"name":"small: average","lo":300,"hi":800}'), 1) AS average;

.print
.print 4. The outer tiers get the same releases with more noise, made from the inner ones. The data is
.print not read again. 95% of the noise stays within low and high.

SELECT release, round(dp_diffuse(release, 'district'), 1) AS district,
                round(dp_diffuse(release, 'public'), 1)   AS public
FROM dp_publication WHERE tier = 'school';

SELECT release, tier, round(value, 1) AS value, round(low, 1) AS low, round(high, 1) AS high
FROM dp_value ORDER BY release DESC, stddev;

.print
.print 5. The averages beside the truth, which nobody outside the school office sees.

SELECT tier, round(value, 1) AS average, round((high - low) / 2, 1) AS plus_minus,
       (SELECT round(avg(reading), 1) FROM star WHERE grade = '2' AND class_type = 'small') AS truth
FROM dp_value WHERE release = 'small: average' ORDER BY stddev;

.print
.print 6. One release answers for all groups, with one charge. Does a small class help?
.print The averages, and then their intervals beside the truth:

SELECT key AS class_type, round(value, 1) AS average
FROM dp_answer('school', 'group_avg', 'SELECT class_type, reading FROM star WHERE grade = ''2''',
               '{"name":"by class","lo":300,"hi":800,"keys":["small","reg","reg+A"]}');

SELECT key AS class_type, round(low, 1) AS low, round(high, 1) AS high,
       (SELECT round(avg(reading), 1) FROM star WHERE grade = '2' AND class_type = key) AS truth
FROM dp_value WHERE release = 'by class' ORDER BY key;

.print
.print 7. A question may be any query. It is evaluated for one student at a time, so nobody can change
.print what another student contributes. How far apart are a student's lowest and highest scores?

SELECT round(value) AS median_spread, round(low) AS low, round(high) AS high
FROM dp_answer('school', 'median',
               'SELECT max(reading) - min(reading) FROM star HAVING count(reading) > 1',
               '{"name":"spread","lo":0,"hi":400}');

.print
.print 8. Budgets shrink. Asking again for the same name replays the same number and costs nothing.

SELECT round(dp_release('school', 'count', 'SELECT reading FROM star WHERE grade = ''2'' AND class_type = ''small''',
                        '{"name":"small: students","clip":1}'), 1) AS students;

SELECT tier, epsilon, round(spent_epsilon, 3) AS spent, round(remaining_epsilon, 3) AS remaining,
       releases, releases_left
FROM dp_budget ORDER BY epsilon DESC;
SELECT dp_verify() AS books;

.print
.print 9. The attack again, by an analyst who may send any SQL. The connection is guarded: it shows what
.print the public may know, and half of what is left of the public budget pays for questions.

SELECT dp_grant('analysts', 'public', 0.5) AS grant_name;
SELECT dp_guard('public', '{"ask":"analysts"}') AS guarded_for;

.print
.print The same two averages as questions, and the same subtraction. A score counts as 300 to 800 points.

SELECT round(all_children, 1) AS all_children, round(without_her, 1) AS without_her,
       round(215 * all_children - 214 * without_her) AS her_score
FROM (SELECT
  dp_release('public', 'avg', 'SELECT reading FROM star WHERE school_id = 51 AND grade = ''2''',
             '{"name":"all","lo":300,"hi":800}') AS all_children,
  dp_release('public', 'avg', 'SELECT reading FROM star WHERE school_id = 51 AND grade = ''2''
                               AND student_id <> 61977',
             '{"name":"without her","lo":300,"hi":800}') AS without_her);

.print
.print The intervals. An error of 50 points in an average of 215 children is one of over 10,000 points in
.print their total, and hides any score. Asking again gives the same numbers, and new questions use up
.print what is left of the grant.

SELECT release, display FROM dp_value WHERE release LIKE 'analysts/%';
SELECT grant_name, charges AS asked,
       CAST((reserved - spent) / rate AS INTEGER) AS questions_left
FROM dp_reserve JOIN dp_tier ON name = tier;

.print
.print The rows, inner tiers, and publishing further are out of reach:
