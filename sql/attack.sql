-- The end of `make demo`: statements that a guarded connection refuses. Each statement ends in an
-- error.
.mode box
.load build/diffuse
SELECT dp_guard('public', '{"ask":"analysts"}') AS guarded_for;
.echo on
SELECT avg(reading) FROM star WHERE student_id = 61977;
SELECT count(*) FROM star;
SELECT dp_diffuse('by class', 'public');
SELECT dp_release('school', 'count', 'SELECT reading FROM star', '{"name":"inner","clip":1}');
