-- Makes a file for the audience of one tier: a new SQLite file that contains only what its members may see.
--
--   sqlite3 clinic.db ".load build/diffuse" ".parameter set @tier public" \
--           ".parameter set @file public.db" ".read sql/export.sql"
--
-- You can also write the two names into the statement below. The file @file must not exist yet.
-- reporting.md describes its contents.
.bail on
SELECT dp_export(@tier, @file) AS handover;
