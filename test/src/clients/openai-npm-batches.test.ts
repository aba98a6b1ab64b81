import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI, { NotFoundError, toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SkeinProcess, startServer } from '../support/skein-process.js';

const line = (custom_id: string, max_tokens: number) =>
  JSON.stringify({
    custom_id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { messages: [{ role: 'user', content: 'Hi' }], max_tokens, temperature: 0, ignore_eos: true },
  });

describe('files and batches of the openai package from npm', () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-npm-batches-'));
  const flags = ['--files-dir', folder, '--max-active-requests', '8', '--max-context-tokens', '1024'];
  let server: SkeinProcess;
  let client: OpenAI;

  async function start() {
    server = await startServer(flags);
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  }
  beforeAll(start, 300_000);
  afterAll(async () => {
    await server?.stop();
  });

  const begin = async (lines: readonly string[]) => {
    const file = await client.files.create({
      file: await toFile(Buffer.from(lines.join('\n')), 'in.jsonl'),
      purpose: 'batch',
      expires_after: { anchor: 'created_at', seconds: 7200 },
    });
    expect(file.expires_at).toBe(file.created_at + 7200);
    return client.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
      metadata: { job: 'test' },
    });
  };
  const ended = async (id: string) => {
    await expect
      .poll(async () => (await client.batches.retrieve(id)).status)
      .toMatch(/^(completed|failed|cancelled)$/);
    return client.batches.retrieve(id);
  };
  const answers = async (id: string) => {
    const text = await (await client.files.content(id)).text();
    return text
      .trimEnd()
      .split('\n')
      .map((one) => JSON.parse(one) as { custom_id: string; response: { body: OpenAI.ChatCompletion } });
  };

  it('are stored, answered, listed and deleted', async () => {
    const begun = await begin([line('a', 3), line('b', 4)]);
    const batch = await ended(begun.id);
    expect(batch).toMatchObject({
      status: 'completed',
      metadata: { job: 'test' },
      request_counts: { total: 2, completed: 2, failed: 0 },
      usage: { output_tokens: 7 },
    });
    const found = await answers(batch.output_file_id!);
    expect(found.map(({ custom_id }) => custom_id).sort()).toEqual(['a', 'b']);
    expect(found[0]!.response.body.choices[0]!.message.role).toBe('assistant');
    const ids: string[] = [];
    for await (const file of client.files.list({ limit: 1 })) ids.push(file.id);
    expect(ids).toEqual([batch.output_file_id, batch.input_file_id]);
    const batches: string[] = [];
    for await (const one of client.batches.list({ limit: 1 })) batches.push(one.id);
    expect(batches).toEqual([batch.id]);
    expect(await client.files.delete(batch.input_file_id)).toMatchObject({ deleted: true });
    await expect(client.files.retrieve(batch.input_file_id)).rejects.toThrow(NotFoundError);
  });

  it('are cancelled with what they have', async () => {
    const { id } = await begin(Array.from({ length: 60 }, (_, i) => line(`${i}`, 200)));
    await expect
      .poll(async () => (await client.batches.retrieve(id)).request_counts!.completed)
      .toBeGreaterThan(0);
    expect(['cancelling', 'cancelled']).toContain((await client.batches.cancel(id)).status);
    const batch = await ended(id);
    expect(batch.status).toBe('cancelled');
    const { completed } = batch.request_counts!;
    expect(await answers(batch.output_file_id!)).toHaveLength(completed);
    expect(await answers(batch.error_file_id!)).toHaveLength(60 - completed);
  });

  it('go on when the server was killed, and nothing is answered twice', async () => {
    const { id } = await begin(Array.from({ length: 24 }, (_, i) => line(`${i}`, 60)));
    await expect
      .poll(async () => (await client.batches.retrieve(id)).request_counts!.completed)
      .toBeGreaterThan(2);
    server.child.kill('SIGKILL');
    await server.ended;
    await start();
    const batch = await ended(id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 24, completed: 24 } });
    const found = await answers(batch.output_file_id!);
    expect(new Set(found.map(({ custom_id }) => custom_id)).size).toBe(24);
    expect(found).toHaveLength(24);
  });
});
