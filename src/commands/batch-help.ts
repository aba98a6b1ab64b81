/** The text behind the options of `skein batch --help`. */
export const BATCH_HELP = `
A line of IN.jsonl: {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"model": ..., "messages": ...}}
A line of OUT.jsonl: {"id": ..., "custom_id": "a", "response": {"status_code": 200, "request_id": ..., "body": ...}, "error": null}

Answers are written in the order in which they are ready; custom_id says which request an answer belongs to. To continue an
interrupted batch, run the same command again: it skips requests that have an answer, and sends failed ones again.

Exit codes: 0 all requests are answered, 1 the batch could not be started or not be finished, 2 for a name, a value or an
input file that is not understood, 3 some requests failed (the error file lists them), 130 after SIGINT, 143 after SIGTERM.
`;
