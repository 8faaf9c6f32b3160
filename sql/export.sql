-- Makes a file for the audience of one tier: a new SQLite file that contains only what its members may see.
--
--   sqlite3 clinic.db ".load build/diffuse" ".parameter set @tier public" \
--           ".parameter set @file public.db" ".read sql/export.sql"
--
-- (or write the names into the statement below). The file must not exist. reporting.md describes it.
.bail on
SELECT dp_export(@tier, @file) AS handover;
