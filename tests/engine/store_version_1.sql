-- A store of schema version 1, with a finished run and one whose writer died. Never change it.
PRAGMA user_version = 1;
PRAGMA application_id = 1146245955;
PRAGMA journal_mode = WAL;
BEGIN TRANSACTION;
CREATE TABLE runs (
            number INTEGER PRIMARY KEY,  -- rises with time
            id TEXT NOT NULL UNIQUE,
            created_at TEXT NOT NULL,    -- UTC, ISO 8601
            state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
            spec TEXT NOT NULL,          -- RunSpec as JSON
            versions TEXT NOT NULL,      -- JSON
            started TEXT,                -- the event as JSON
            finished TEXT,               -- the event as JSON
            record TEXT                  -- engine.report.Report.record as JSON, once the run is over
        );
INSERT INTO "runs" VALUES(1,'a1','2025-01-02T03:04:05+00:00','running','{"schema": 1, "target": "markov", "drafter": "model", "rule": "exact", "draft_length": 4, "temperature": 0.7, "top_k": 0, "top_p": 1.0, "max_tokens": 2, "stop": [], "seed": 0, "prompt": "The draft", "chat": true, "ngram_max": 3, "ngram_match": "recent", "acceptance_probability": 0.1, "agreement": 0.0, "target_call_seconds": 0.5, "draft_call_seconds": 0.125}','{"draftscope": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}','{"type":"started","target":"markov","drafter":"model:markov-draft","rule":"exact","lossless":true,"seed":0,"prompt":[318,38],"simulated":true}',NULL,NULL);
INSERT INTO "runs" VALUES(2,'f2','2025-01-02T03:04:05+00:00','finished','{"schema": 1, "target": "markov", "drafter": "model", "rule": "exact", "draft_length": 4, "temperature": 0.7, "top_k": 0, "top_p": 1.0, "max_tokens": 2, "stop": [], "seed": 0, "prompt": "The draft", "chat": true, "ngram_max": 3, "ngram_match": "recent", "acceptance_probability": 0.1, "agreement": 0.0, "target_call_seconds": 0.5, "draft_call_seconds": 0.125}','{"draftscope": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"}','{"type":"started","target":"markov","drafter":"model:markov-draft","rule":"exact","lossless":true,"seed":0,"prompt":[318,38],"simulated":true}','{"type":"finished","reason":"length","ids":[28,29],"text":", and","prefill_seconds":0.625,"total_seconds":1.25}','{"target":"markov","drafter":"model:markov-draft","rule":"exact","lossless":true,"seed":0,"prompt_tokens":2,"text":", and","ids":[28,29],"tokens_generated":2,"steps":1,"drafting_steps":1,"drafted":1,"accepted":1,"rejected":0,"unreached":0,"recovered":0,"bonus":1,"plain":0,"discarded":0,"acceptance_rate":1.0,"per_token_acceptance":1.0,"tokens_per_step":2.0,"target_calls_saved":1,"accepted_length_histogram":[0,1],"per_position":[{"position":1,"drafted":1,"tested":1,"accepted":1,"survival":1.0,"conditional":1.0}],"total_time":1.25,"prefill_seconds":0.625,"decode_seconds":0.625,"draft_seconds":0.125,"verify_seconds":0.5,"overhead_seconds":0.0,"draft_share":0.2,"verify_share":0.8,"overhead_share":0.0,"tokens_per_second":3.2,"speculation":"active: 1 of 1 steps drafted","simulated":true,"finish_reason":"length","error":"","near_ties":0,"identities_ok":true}');
CREATE TABLE steps (
            run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
            step INTEGER NOT NULL,
            event TEXT NOT NULL,         -- a Step as JSON, or the Drafted of a step that never came
            PRIMARY KEY (run, step)
        ) WITHOUT ROWID
        ;
INSERT INTO "steps" VALUES(1,0,'{"type":"step","index":0,"context_length":2,"decisions":[{"position":0,"outcome":"accepted","draft_token":28,"target_token":28,"accepted":true,"draft_prob":0.19458917322134134,"target_prob":0.10575121501338941,"accept_prob":0.543458884493535,"draw":0.41079771832573464,"emitted_prob":0.10575121501338941,"draft_text":",","target_text":","},{"position":1,"outcome":"bonus","target_token":29,"emitted_prob":0.3396919060254373,"target_text":" and"}],"emitted":[28,29],"draft_seconds":0.125,"verify_seconds":0.5,"overhead_seconds":0.0,"at_seconds":1.25}');
INSERT INTO "steps" VALUES(2,0,'{"type":"step","index":0,"context_length":2,"decisions":[{"position":0,"outcome":"accepted","draft_token":28,"target_token":28,"accepted":true,"draft_prob":0.19458917322134134,"target_prob":0.10575121501338941,"accept_prob":0.543458884493535,"draw":0.41079771832573464,"emitted_prob":0.10575121501338941,"draft_text":",","target_text":","},{"position":1,"outcome":"bonus","target_token":29,"emitted_prob":0.3396919060254373,"target_text":" and"}],"emitted":[28,29],"draft_seconds":0.125,"verify_seconds":0.5,"overhead_seconds":0.0,"at_seconds":1.25}');
COMMIT;
