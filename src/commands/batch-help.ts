/** The text behind the options of `skein batch --help`. */
export const BATCH_HELP = `
A line of IN.jsonl: {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"model": ..., "messages": ...}}
A line of OUT.jsonl: {"id": ..., "custom_id": "a", "response": {"status_code": 200, "request_id": ..., "body": ...}, "error": null}

Answers come in the order in which they are ready; custom_id tells which is which. A batch that was cut off, in any way,
goes on where the same command is given again: what has an answer is not asked twice, what failed is.

Exit codes: 0 all requests are answered, 1 the batch could not be run or not to its end, 2 for a name, a value or an input
file that is not understood, 3 some requests failed (the error file has them), 130 and 143 after SIGINT and SIGTERM.
`;
