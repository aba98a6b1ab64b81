import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { FakeHub, filesOf } from '../support/fake-hub.js';
import { freshFolders } from '../support/fresh-folders.js';
import { startServer } from './support/skein-process.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const makeFolder = freshFolders('skein-pull');
const ID = 'skein-tests/tiny-gqa';
let hub: FakeHub;
let environment: Record<string, string>;
beforeAll(async () => {
  hub = await FakeHub.start(ID, filesOf(tinyModelPath('gqa')));
  environment = { HF_ENDPOINT: hub.endpoint, HF_HOME: makeFolder(), HF_TOKEN: '', HF_HUB_OFFLINE: '' };
});
afterAll(() => hub.close());

describe('skein pull', () => {
  it('prints where the model lies, and on stderr how far it is', async () => {
    const { code, stdout, stderr } = await runCli(['pull', ID], { environment });
    expect({ code, lastLine: stderr.trimEnd().split('\n').at(-1) }).toEqual({
      code: 0,
      lastLine: expect.stringMatching(/^skein: downloading skein-tests\/tiny-gqa: 100 % of [\d.]+ MB$/),
    });
    expect(readdirSync(stdout.trim())).toContain('config.json');
  });

  it('says the same as JSON, with nothing to download the second time', async () => {
    const { code, stdout, stderr } = await runCli(['pull', ID, '--json', '--revision', 'v1'], {
      environment,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const path = join(environment.HF_HOME!, 'hub/models--skein-tests--tiny-gqa/snapshots', hub.commit);
    expect(JSON.parse(stdout)).toEqual({
      id: ID,
      commit: hub.commit,
      revision: 'v1',
      path,
      bytes: expect.any(Number),
      downloadedBytes: 0,
    });
  });

  it.each([
    [
      'no name of a repository',
      ['pull', 'tiny'],
      2,
      /^skein: "tiny" names no repository of models; ORG\/NAME/,
    ],
    [
      'a repository that there is not',
      ['pull', 'a/b'],
      1,
      /^skein: 127\.0\.0\.1 has no model a\/b; if it is private/,
    ],
    [
      'a QUANT that there is not',
      ['pull', `${ID}:Q4_0`],
      1,
      /holds no GGUF file, so :Q4_0 names nothing in it/,
    ],
    ['a revision that there is not', ['pull', ID, '--revision', 'v9'], 1, /or no revision "v9" of it\.$/m],
  ])('refuses %s', async (_what, args, code, message) => {
    const ended = await runCli(args, { environment });
    expect(ended.stderr).toMatch(message);
    expect(ended).toMatchObject({ code, stdout: '' });
  });
});

describe('a model of the hub', () => {
  it('is served and built by its name, from the cache without any question', async () => {
    await runCli(['pull', ID], { environment });
    const { questions } = hub;
    const server = await startServer(['--model', ID], environment);
    try {
      const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
      expect(data.map(({ id }) => id)).toEqual([ID]);
      const one = await fetch(`${server.url}/v1/models/${ID}`);
      expect([one.status, ((await one.json()) as { id: string }).id]).toEqual([200, ID]);
      const encoded = await fetch(`${server.url}/v1/models/${encodeURIComponent(ID)}`);
      expect(encoded.status).toBe(200);
      expect(server.output().stdout).toMatch(new RegExp(`serves ${ID} at `));
    } finally {
      await server.stop();
    }
    const output = join(makeFolder(), 'engine');
    const offline = { ...environment, HF_HUB_OFFLINE: '1' };
    expect((await runCli(['build', ID, '-o', output], { environment: offline })).code).toBe(0);
    expect(existsSync(join(output, 'engine.json'))).toBe(true);
    expect(hub.questions).toBe(questions);
  });

  it('comes at the start where it is not there yet; a folder of that name is meant before', async () => {
    const fresh = { ...environment, HF_HOME: makeFolder() };
    const server = await startServer(['--model', ID], fresh);
    expect(server.output().stderr).toMatch(/downloading skein-tests\/tiny-gqa: 0 %/);
    await server.stop();
    const { code, stderr } = await runCli(['build', 'a/b', '-o', join(makeFolder(), 'e')], {
      environment: fresh,
    });
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^skein: There is no file or folder a\/b here, and 127\.0\.0\.1 has no model a\/b;/,
      ),
    ]);
  });
});
