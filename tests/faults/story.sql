-- Calls every function once, for a run under valgrind (make check-valgrind). Some statements fail
-- on purpose, and the shell continues after their errors.
.load build/diffuse
CREATE TABLE t(u, k, x, v);
INSERT INTO t VALUES (1, 'p', 1, '[1,2]'), (1, 'p', 2.5, x'0000803f00000040'), (2, 'p', '3', '[3,0]'),
                     (3, 'q', 4, 'no vector'), (NULL, NULL, NULL, NULL), ('4', x'00ff', 1e300, '[1e3,-2]');
UPDATE t SET rowid = rowid * 20000; -- several ranges, for several threads
SELECT dp_count('a', x, 1) FROM t;
SELECT dp_init('{"unit":"u","protects":"unit","adjacency":"replace"}') IS NOT NULL;
SELECT dp_init('{"protects":"row"}');
SELECT dp_protect('t', 'u');
SELECT dp_tier('a', 1e-2, 20, 1e-5, 'rdp', 1e-6), dp_tier('b', 1e-3, 10, 1e-5, 'rdp', 1e-6);
SELECT dp_tier('a', 1e-4, 2, 1e-5);
SELECT dp_count('a', x, 2, 'count') IS NULL, dp_count_distinct('a') IS NULL, dp_sum('b', x, 9, 'sum') IS NULL,
       dp_avg('a', x, 0, 9) IS NULL, dp_var('a', x, 0, 9) IS NULL, dp_stddev('a', x, 0, 9) IS NULL FROM t;
SELECT dp_quantile('a', x, '[0.1,0.5]', 0, 9, 'tree') IS NULL, dp_median('a', x, 0, 9) IS NULL,
       dp_histogram('a', x, 0, 9, 3, '{"name":"bins","clip":1}') IS NULL, dp_bounds('a', x, 'bounds') IS NULL FROM t;
SELECT dp_quantile('a', x, 0.3, 0, 9, '{"name":"drawn","mechanism":"exponential"}') IS NULL, dp_median('b', x, 0, 9) IS NULL FROM t;
SELECT dp_diffuse('drawn', 'b');
SELECT dp_interval('drawn', 'a', NULL, 0.9);
SELECT dp_plan('b', 'median', NULL, '{"lo":0,"hi":9,"rows":5,"half_width":100}') IS NULL;
SELECT dp_vec_sum('b', v, 2, 9, 'vector') IS NULL, dp_vec_avg('a', v, 2, 9) IS NULL FROM t;
SELECT dp_group_count('a', k, 1, 'private') IS NULL,
       dp_group_sum('a', k, x, 9, '{"name":"groups","keys":["p","q",null,[1,2]]}') IS NULL,
       dp_group_avg('a', k, x, 0, 9) IS NULL FROM t;
SELECT dp_ou_count('a', x, 9, 1) IS NULL, dp_ou_sum('a', x, 9, 99, '{"centre":3}') IS NULL,
       dp_ou_avg('a', x, 0, 9, 5) IS NULL, dp_ou_vec_sum('a', v, 2, 9, 99) IS NULL,
       dp_ou_group_count('a', k, 9, 1, '{"keys":["p"]}') IS NULL,
       dp_ou_group_sum('a', k, x, 9, NULL, '{"keys":["p"],"theta":1,"rho":2}') IS NULL FROM t;
SELECT dp_sum('b', x, 9, '{"name":"laplace","mechanism":"laplace"}') IS NULL,
       dp_count('a', x, 1, '{"mechanism":"laplace","weight":0.5}') IS NULL FROM t;
SELECT dp_choice('a', k, '["p","q",null]', 'symbol') IS NULL,
       dp_choice('a', k, '["p","q"]', '{"name":"response","mechanism":"response"}') IS NULL FROM t;
SELECT dp_mix('symbol', 'b', '[["p","p",0.5],["p","q",0.5],["q","q",1],["null","p",1]]') IS NULL;
SELECT dp_mix('symbol', 'b', '[["q","q",1],{"x":"p","y":"p","p":0.5},["p","q",0.5],[null,"p",1.0]]') IS NULL;
SELECT dp_sum('a', x, 9) IS NULL FROM t;
SELECT dp_release('a', 'group_sum', 'SELECT k, x FROM t', '{"clip":9,"keys":["p"]}') IS NULL;
SELECT dp_release('a', 'count', 'SELECT x FROM t WHERE 0', '{"name":"empty","clip":1}') IS NULL;
SELECT dp_release('a', 'group_sum', 'SELECT k, k, x FROM t', '{"name":"series","clip":9,"keys":["p","q"],"periods":["p","q","r"],"diagnose":true}') IS NULL;
SELECT dp_diffuse('series', 'b') IS NULL, dp_append('series', 'q') IS NULL, dp_append('series', 'p') IS NULL;
SELECT count(*) FROM dp_span('series', 'b', 1), dp_span('series', 'a', 'p', 'q');
SELECT dp_append('series', 'r') IS NULL, dp_append('series', 's');
PRAGMA threads = 2;
SELECT dp_release('a', 'sum', 'SELECT x FROM t WHERE x < 5 OR x IS NULL', '{"clip":9}') IS NULL;
SELECT dp_release('a', 'group_count', 'SELECT k FROM t', '{"clip":1}') IS NULL;
SELECT dp_release('a', 'vec_sum', 'SELECT v FROM t', '{"clip":1,"dim":2}') IS NULL;
PRAGMA threads = 0;
-- States of shards whose units have rows in several shards, in one shard only, or no unit at all.
CREATE TEMP TABLE s AS SELECT dp_partial('sum', 'SELECT x FROM t WHERE k = ''p''', '{"clip":9}') AS s
                 UNION ALL SELECT dp_partial('sum', 'SELECT x FROM t WHERE k = ''p''', '{"clip":9}');
SELECT dp_merge('a', dp_states(s), 'merged') IS NULL FROM s;
SELECT dp_merge('a', dp_states(dp_partial('group_sum', 'SELECT k, x FROM t', '{"clip":9}'))) IS NULL;
SELECT dp_merge('a', dp_states(dp_partial('group_avg', 'SELECT k, x FROM t', '{"lo":0,"hi":9,"whole_units":true,"shard":"p"}'))) IS NULL;
SELECT dp_merge('a', dp_states(dp_partial('median', 'SELECT x FROM t WHERE 0', '{"lo":0,"hi":9,"whole_units":true,"shard":"p"}'))) IS NULL;
-- Statements that fail before or after the charge.
SELECT dp_partial('sum', 'SELECT x FROM t', 'name');
SELECT dp_partial('no kind', NULL), dp_partial('sum', '{}');
SELECT dp_merge('a', dp_states(x)) FROM t;
SELECT dp_merge('a', dp_states(s || 'x')) FROM s;
SELECT dp_merge('a', dp_states(v)) FROM (SELECT s AS v FROM s UNION ALL SELECT dp_partial('sum', 'SELECT x FROM t', '{"clip":8}'));
SELECT dp_merge('a', dp_states(s)), abs(min(-9223372036854775808, count(*))) FROM s;
SELECT dp_merge('a', dp_states(NULL));
SELECT dp_merge('a', dp_states(dp_partial('sum', 'SELECT x FROM t', '{"clip":9,"shard":"p"}')), '{"shards":["p"]}') IS NULL;
SELECT dp_merge('a', dp_states(dp_partial('sum', 'SELECT x FROM t', '{"clip":9,"shard":"p"}')), '{"shards":["q"]}');
SELECT dp_merge('a', dp_states(dp_partial('sum', 'SELECT x FROM t', '{"clip":9,"shard":"p"}')), '{"shards":2}');
SELECT dp_partial('sum', 'SELECT x FROM t', '{"clip":9,"whole_units":true}');
SELECT dp_sum('a', x, 9, 'sum') FROM t;
SELECT dp_sum('b', x, 8, 'sum') FROM t;
SELECT dp_sum('z', x, 9) FROM t;
SELECT dp_sum('a', x, 9, '{"keys":[1]}') FROM t;
SELECT dp_sum('a', x, 9, '{"name":"x","name":"y"}') FROM t;
SELECT dp_sum('a', x, u) FROM t;
SELECT dp_sum('a', x, 9) FROM t WHERE 0;
SELECT dp_sum('a', abs(iif(u = 3, -9223372036854775808, 1)), 9, 'error in a row') FROM t;
SELECT dp_sum('a', x, 9, 'error elsewhere'), abs(min(-9223372036854775808, count(*))) FROM t;
SELECT dp_sum('a', x, 9, 'twice') FROM t GROUP BY k;
SELECT dp_release('a', 'sum', 'SELECT abs(-9223372036854775808) FROM t', '{"clip":1,"name":"failed"}');
SELECT dp_release('a', 'sum', 'DELETE FROM t', 'x');
SELECT dp_release('a', 'no kind', 'SELECT 1', 'x');
SELECT dp_quantile('a', x, '[2]', 0, 9) FROM t;
SELECT dp_group_count('a', k, 1, '{"keys":[]}') FROM t;
SELECT dp_sum('a', x, 9, '{"mechanism":"response"}') FROM t;
SELECT dp_avg('a', x, 0, 9, '{"mechanism":"laplace"}') FROM t;
SELECT dp_choice('a', k, '[]') FROM t;
SELECT dp_choice('a', k, '["p"]', '{"clip":1}') FROM t;
SELECT dp_release('a', 'choice', 'SELECT abs(-9223372036854775808) FROM t', '{"candidates":["p"],"name":"no symbol"}');
SELECT dp_mix('symbol', 'a', '[["p","p",1],["q","q",1],["null","p",1]]');
SELECT dp_mix('symbol', 'b', '[["p","p",1],["q","q",1],["null","p",1]]');
SELECT dp_mix('response', 'b', '[["p","p",1]]');
SELECT dp_mix('response', 'b', '[["p","p",1],["q","q",0.5]]');
SELECT dp_mix('response', 'b', '[["p","p",1],["p","p",0]]');
SELECT dp_mix('response', 'b', '[["p","p","x"]]');
SELECT dp_mix('response', 'b', '[["p","p",1],5]');
SELECT dp_mix('sum', 'b', '[["p","p",1]]');
SELECT dp_diffuse('symbol', 'b');
SELECT dp_tier('p', 1e-2, 1, 1e-6, 'pure');
SELECT dp_tier('p', 1, 1, 0, 'pure');
SELECT dp_tier('big', 1, 1, 1e-6), dp_tier('small', 5e-3, 1, 1e-5, 'gdp', 1e-6);
-- Statements about releases that exist already.
SELECT dp_tier('c', 1e-4, 2, 1e-5, 'rdp', 1e-6), dp_tier('g', 1e-5, 1, 1e-5, 'gdp');
SELECT dp_sum('a', x, 9, '{"name":"sum","refine":true}') IS NULL,
       dp_vec_sum('a', v, 2, 9, '{"name":"vector","refine":true}') IS NULL FROM t;
SELECT dp_diffuse(name, 'c') IS NULL FROM dp_release WHERE state = 'released' AND kind NOT LIKE 'ou%' LIMIT 3;
SELECT dp_diffuse('private', 'c') IS NULL;
SELECT dp_diffuse('tree', 'g') IS NULL;
SELECT dp_diffuse('laplace', 'c') IS NULL;
SELECT dp_diffuse('laplace', 'a');
SELECT dp_diffuse('laplace', 'g');
SELECT dp_mix('symbol', 'c', '[["p","x",0.1],["p","y",0.9],["q","y",1]]') IS NULL;
SELECT dp_mix('symbol', 'g', '[["x","x",1],["y","y",1]]');
SELECT dp_diffuse('failed', 'c');
SELECT dp_discard('failed'), dp_discard('nobody');
SELECT dp_interval('symbol', 'a', 'p', 0.9);
SELECT dp_interval('laplace', 'b', NULL, 0.9) IS NULL, dp_plan('a', 'choice', NULL, '{"candidates":[1,2]}') IS NULL;
SELECT dp_interval('groups', 'a', 'p', 0.9) IS NULL, dp_interval('bins', 'a', 1, 0.9) IS NULL;
SELECT dp_plan('a', 'count', 1, '{"clip":1,"half_width":50}') IS NULL;
SELECT dp_plan('[{"tier":"a","kind":"avg","lo":0,"hi":1},{"tier":"c","kind":"group_count","clip":1}]') IS NULL;
SELECT dp_plan('[{"tier":"a","kind":"count"},{"tier":"a"}]');
SELECT dp_exposure('a, c') IS NULL, dp_exposure('nowhere');
SELECT dp_sum('a', x, 9, '{"name":"diagnosed","diagnose":true}') IS NULL,
       dp_avg('a', x, 0, 3, '{"name":"diagnosed average","diagnose":true}') IS NULL FROM t;
SELECT dp_diffuse('diagnosed average', 'b') IS NULL, dp_clipping('diagnosed average', 'b') IS NULL;
SELECT dp_clipping('diagnosed', 'a') IS NULL, dp_clipping('diagnosed', 'b');
SELECT length(dp_certificate()) > 1000;
SELECT dp_report('c') LIKE '<!doctype html>%</script>_', dp_report('nowhere');
SELECT count(display) > 0 FROM dp_value;
SELECT dp_export('c', '/nowhere/at/all');
SELECT count(*) > 0 FROM dp_tier, dp_budget, dp_publication;
SELECT count(*) > 0 FROM dp_value, dp_release, dp_charge USING (release_id);
SELECT count(*) > 0 FROM dp_rdp WHERE tier = 'a';
SELECT count(*), max(value) IS NULL FROM dp_value WHERE release = 'groups' AND tier = 'a' AND key = 'p';
SELECT dp_verify();
SELECT dp_batch('[{"tier":"a","kind":"sum","sql":"SELECT x FROM t","options":{"name":"batch","clip":9},"diffuse":["b"]}]') IS NULL;
SELECT dp_batch('[{"tier":"a","kind":"sum","sql":"SELECT x FROM t","options":{"name":"batch","clip":9},"diffuse":["b"]}]') IS NULL;
SELECT dp_batch('[{"tier":"a","kind":"sum","sql":"SELECT x FROM t","options":{"name":"b2","clip":9}},
                  {"tier":"a","kind":"count","sql":"SELECT abs(-9223372036854775808) FROM t","options":{"name":"b3","clip":1}},
                  {"tier":"b","kind":"group_count","sql":"SELECT k FROM t","options":{"name":"b4","clip":1},"diffuse":["c"]}]');
SELECT dp_batch('[{"tier":"a","kind":"sum","sql":"SELECT 1","options":{"name":"b5"}}]'), dp_batch('[{"tier":1}]');
SELECT dp_plan('[{"tier":"a","kind":"sum","sql":"SELECT x FROM t","options":{"name":"b6","clip":9},"diffuse":["b","c"]}]') IS NULL;
SELECT dp_plan('a', 'avg', NULL, '{"lo":0,"hi":9,"rows":50,"unit":"days","half_width":90}') ->> 'summary' IS NULL;
SELECT dp_tier('year', 0.5, 900, 1e-5, '{"period":"year","delta_keys":2e-6}'), dp_tier('x', 1, 9, 1e-5, '{"period":"era"}');
SELECT dp_count('year', x, 1) IS NULL FROM t;
SELECT length(dp_exposure('year')) > 0, period_start IS NULL FROM dp_budget WHERE tier = 'year';
SELECT dp_tier('p', 1e-6, 1, 0, 'pure');
SELECT dp_count('p', x, 1) FROM t;
SELECT dp_count('p', x, 1, '{"mechanism":"laplace"}') FROM t;
SELECT dp_verify();
-- The functions of the papers, and the aggregates that return kernels.
SELECT round(dp_rate(1, 1e-6), 6), round(dp_epsilon(0.5, 1e-6), 6), dp_sigma(1, 'x');
SELECT dp_kernel_dobrushin(x, y, p), dp_kernel_doeblin(x, y, p), dp_kernel_delta(x, y, p, 0.5, 0.1)
FROM (SELECT 1 AS x, 'a' AS y, 0.25 AS p UNION ALL SELECT 1, 'b', 0.75 UNION ALL SELECT 'z', 'b', 1);
SELECT dp_kernel_dobrushin(1, 2, 0.5);
