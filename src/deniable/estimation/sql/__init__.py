"""SQL over a release: SELECT .. COUNT(*), SUM, AVG .. WHERE .. GROUP BY .. HAVING .. ORDER BY .. LIMIT.

User text is parsed and interpreted, never passed on to a database.
"""
