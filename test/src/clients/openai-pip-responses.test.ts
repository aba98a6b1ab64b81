import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testModelPath } from '../../support/test-model.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { testPython } from '../support/test-python.js';

const script = `
import json, sys
from openai import BadRequestError, NotFoundError, OpenAI
from pydantic import BaseModel

class City(BaseModel):
    city: str

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
ask = {"model": client.models.list().data[0].id, "temperature": 0, "max_output_tokens": 24}
question = "What is the capital of France?"
whole = client.responses.create(input=question, **ask)
with client.responses.stream(input=question, **ask) as stream:
    events = [event.type for event in stream]
    final = stream.get_final_response()
again = client.responses.create(input="Are you sure?", previous_response_id=whole.id, **ask)
parsed = client.responses.parse(input="The capital of France as JSON.", text_format=City, **ask)
items = [item.role for item in client.responses.input_items.list(again.id, order="asc")]
client.responses.delete(whole.id)
try:
    client.responses.retrieve(whole.id)
    gone = False
except NotFoundError:
    gone = True
try:
    client.responses.create(input=question, prompt={"id": "pmpt_1"}, **ask)
    refused = None
except BadRequestError as error:
    refused = error.param
conversation = client.conversations.create()
client.responses.create(input=question, conversation=conversation.id, **ask)
client.responses.create(input="Are you sure?", conversation=conversation.id, **ask)
listed = client.conversations.items.list(conversation.id, order="asc", limit=1)
roles = [item.role for item in listed]
taken = client.conversations.items.delete(listed.data[0].id, conversation_id=conversation.id).id
kept = client.conversations.update(conversation.id, metadata={"a": "b"}).metadata
dropped = client.conversations.delete(conversation.id).deleted
compacted = client.responses.compact(
    model=ask["model"],
    input=[{"role": "user", "content": question}, {"role": "assistant", "content": "Paris."}],
)
window = [item.to_dict() for item in compacted.output]
onward = client.responses.create(input=[*window, {"role": "user", "content": "And of Italy?"}], **ask)
print(json.dumps({
    "whole": whole.output_text,
    "streamed": final.output_text,
    "events": [events[0], events[-1]],
    "again": again.status,
    "parsed": parsed.output_parsed.city if parsed.output_parsed else None,
    "items": items,
    "gone": gone,
    "refused": refused,
    "conversation": [roles, taken == conversation.id, kept, dropped],
    "compacted": [item.type for item in compacted.output],
    "onward": onward.status,
}))
`;

describe.skipIf(testPython === null || testModelPath === null)(
  'responses by the openai package from pip',
  () => {
    let server: SkeinProcess;

    beforeAll(async () => {
      const limits = [
        '--max-active-requests',
        '8',
        '--max-context-tokens',
        '1024',
        '--kv-cache-tokens',
        '4096',
      ];
      server = await startServer(['--model', testModelPath!, '--weights', 'bf16', ...limits]);
    });

    afterAll(async () => {
      await server?.stop();
    });

    it('are created, streamed, parsed, gone on with, listed, deleted and refused as it expects', async () => {
      const { stdout } = await promisify(execFile)(testPython!, ['-c', script, `${server.url}/v1`]);
      const said = JSON.parse(stdout) as Record<string, unknown>;
      expect(said.whole).toContain('Paris');
      expect(said).toMatchObject({
        streamed: said.whole,
        events: ['response.created', 'response.completed'],
        items: ['user', 'assistant', 'user'],
        parsed: expect.any(String),
        gone: true,
        refused: 'prompt',
        conversation: [['user', 'assistant', 'user', 'assistant'], true, { a: 'b' }, true],
        compacted: ['message', 'compaction'],
        onward: expect.stringMatching(/^(completed|incomplete)$/),
      });
    });
  },
);
