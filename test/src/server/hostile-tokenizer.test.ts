import type { ChildProcess } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { postJson } from '../../support/post-json.js';
import { startServer } from '../support/skein-process.js';

const folder = temporaryFolder('skein-hostile');
let child: ChildProcess | undefined;
afterAll(() => {
  child?.kill('SIGKILL'); // where the test failed
});

/** The demo model with a pattern that never ends on forty letters. */
function hostileModel(): string {
  const model = join(folder, 'hostile');
  cpSync(fileURLToPath(new URL('../../../models/demo/gosling', import.meta.url)), model, { recursive: true });
  const path = join(model, 'tokenizer.json');
  const tokenizer = JSON.parse(readFileSync(path, 'utf8')) as { pre_tokenizer: object };
  const split = { type: 'Split', pattern: { Regex: '(a+)+$' }, behavior: 'Isolated', invert: false };
  tokenizer.pre_tokenizer = { type: 'Sequence', pretokenizers: [split, tokenizer.pre_tokenizer] };
  writeFileSync(path, JSON.stringify(tokenizer));
  return model;
}

it("a prompt that a stranger's tokenizer never gets through fails alone", async () => {
  const server = await startServer(['--model', hostileModel(), '--cache-dir', join(folder, 'cache')]);
  child = server.child;
  const post = (body: object) => postJson(`${server.url}/v1/completions`, { model: 'hostile', ...body });
  const ask = (prompt: string) => post({ prompt, max_tokens: 2 });

  const stream = await post({ prompt: 'Once', max_tokens: 500, ignore_eos: true, stream: true });
  expect(stream.status).toBe(200);
  const hostile = ask(`${'a'.repeat(40)}!`).then(async (answer) => {
    return { status: answer.status, body: (await answer.json()) as { error: { message: string } } };
  });
  // While it is worked on: the thread that serves HTTP is free, and so is one that encodes.
  expect((await fetch(`${server.url}/health`)).status).toBe(200);
  expect((await ask('Twice')).status).toBe(200);
  const text = await stream.text();
  expect(text.match(/^data: /gm)!.length).toBeGreaterThan(5);
  expect(text).not.toContain('error');
  expect(text.trimEnd()).toMatch(/data: \[DONE\]$/);

  const { status, body } = await hostile;
  expect(status).toBe(400);
  expect(body.error.message).toMatch(
    /^The prompt could not be made in time\. It took more than 2[.\d]* s\.$/,
  );
  expect((await ask('Thrice')).status).toBe(200);
  expect(await server.stop()).toMatchObject({ code: 0 });
});
