import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { golden, hostilePictures } from '../../../support/hostile-pictures.js';
import { postJson } from '../../../support/post-json.js';
import { writeSeeingModel } from '../../../support/seeing-model.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';

const MODEL_FOLDER = 'skein-attacked';
let server: SkeinProcess;
beforeAll(async () => {
  const model = ['--model', `seeing=${writeSeeingModel(temporaryFolder(MODEL_FOLDER))}`];
  server = await startServer([...model, '--allow-image-urls', '--threads', '1', '--kv-cache-tokens', '4096']);
});
afterAll(() => server.stop());

/** What the server says of a chat with one picture. */
async function ask(url: string): Promise<{ status: number; message: string }> {
  const content = [
    { type: 'image_url', image_url: { url } },
    { type: 'text', text: 'what?' },
  ];
  const body = { model: 'seeing', messages: [{ role: 'user', content }], max_tokens: 1 };
  const response = await postJson(`${server.url}/v1/chat/completions`, body);
  const { error } = (await response.json()) as { error?: { message: string } };
  return { status: response.status, message: error?.message ?? '' };
}

const urlOf = (file: Uint8Array) => `data:image/png;base64,${Buffer.from(file).toString('base64')}`;

/** Processes of the server that decode pictures. */
function helpers(): string[] | null {
  const list = `/proc/${server.child.pid}/task/${server.child.pid}/children`;
  return existsSync(list) ? readFileSync(list, 'utf8').trim().split(' ') : null;
}

describe('a server that is sent hostile files', () => {
  const files = hostilePictures();

  it.each(files)('answers, or refuses by one sentence: $name', async ({ bytes, becomes }) => {
    const { status, message } = await ask(urlOf(bytes));
    // A picture may be larger than this model takes; of what is wrong with some files a decoder need not say anything.
    const isRefused = becomes instanceof RegExp && !becomes.test('100 19');
    expect(isRefused ? [400] : [200, 400], message).toContain(status);
    if (status === 200) return;
    expect(message).toMatch(/^'?messages\[0\]\.content\[0\]\.image_url'?:? [^\n]+\.$/);
    expect(message).not.toMatch(/\/|\\|node_modules|libvips|sharp/);
  });

  it('has ended none of its processes, and still sees', async () => {
    const before = helpers();
    expect(before?.length ?? 1).toBe(1);
    expect((await ask(urlOf(golden('png rgb')))).status).toBe(200);
    expect(helpers()).toEqual(before);
  });
});

describe('a server that may fetch pictures', () => {
  it.each([
    'https://127.0.0.1/a.png',
    'https://127.1/a.png',
    'https://0x7f000001/a.png',
    'https://017700000001/a.png',
    'https://2130706433/a.png',
    'https://0/a.png',
    'https://[::]/a.png',
    'https://[::1]/a.png',
    'https://[::ffff:127.0.0.1]/a.png',
    'https://[::ffff:7f00:1]/a.png',
    'https://[64:ff9b::7f00:1]/a.png',
    'https://[2002:7f00:1::]/a.png',
    'https://10.0.0.1/a.png',
    'https://172.16.0.1/a.png',
    'https://192.168.0.1/a.png',
    'https://100.64.0.1/a.png',
    'https://169.254.169.254/latest/meta-data/',
    'https://[fe80::1]/a.png',
    'https://[fd00:ec2::254]/latest/meta-data/',
    'https://１２７.０.０.１/a.png',
    'https://127.0.0.1:22/a.png',
    'https://user:pass@127.0.0.1/a.png',
    'http://127.0.0.1/a.png',
    'file:///etc/passwd',
    'ftp://127.0.0.1/a.png',
    'gopher://127.0.0.1/',
    '/etc/passwd',
    '//127.0.0.1/a.png',
  ])('does not fetch %s, and does not say what is there', async (url) => {
    const { status, message } = await ask(url);
    expect(status).toBe(400);
    expect(message).not.toMatch(/ECONN|EHOSTUNREACH|ENETUNREACH|refused|TLS|certificate/);
  });
});
