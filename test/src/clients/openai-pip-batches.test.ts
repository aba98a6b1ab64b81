import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';

const script = `
import io, json, sys, time
from openai import OpenAI, BadRequestError

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
lines = [{"custom_id": str(i), "method": "POST", "url": "/v1/completions",
          "body": {"prompt": "Once", "max_tokens": 3, "ignore_eos": True}} for i in range(5)]
def upload(text):
    return client.files.create(file=("in.jsonl", io.BytesIO(text.encode())), purpose="batch",
                               expires_after={"anchor": "created_at", "seconds": 3600})
def ended(file):
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/completions", completion_window="24h")
    while batch.status not in ("completed", "failed", "cancelled"):
        time.sleep(0.02)
        batch = client.batches.retrieve(batch.id)
    return batch
good = ended(upload("\\n".join(json.dumps(line) for line in lines)))
bad = ended(upload("{"))
try:
    client.batches.cancel(good.id)
    refused = None
except BadRequestError as error:
    refused = error.code
answers = [json.loads(line) for line in client.files.content(good.output_file_id).text.splitlines()]
print(json.dumps({
    "status": [good.status, bad.status],
    "counts": good.request_counts.model_dump(),
    "ids": sorted(answer["custom_id"] for answer in answers),
    "errors": [error.model_dump() for error in bad.errors.data],
    "refused": refused,
    "batches": len(list(client.batches.list(limit=1))),
    "files": len(list(client.files.list(limit=2))),
}))
`;

describe.skipIf(testPython === null)('files and batches of the openai package from pip', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    server = await startServer(['--max-active-requests', '8', '--max-context-tokens', '1024']);
  });
  afterAll(async () => {
    await server?.stop();
  });

  it('are stored, answered and listed', async () => {
    const { stdout } = await promisify(execFile)(testPython!, ['-c', script, `${server.url}/v1`]);
    expect(JSON.parse(stdout)).toEqual({
      status: ['completed', 'failed'],
      counts: { total: 5, completed: 5, failed: 0 },
      ids: ['0', '1', '2', '3', '4'],
      errors: [expect.objectContaining({ code: 'invalid_line', line: 1 })],
      refused: 'batch_not_active',
      batches: 2,
      files: 3,
    });
  });
});
