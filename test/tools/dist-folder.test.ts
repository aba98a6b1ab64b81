import type { ChildProcess } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { publish } from '../../tools/dist-folder.mjs';
import { runCli, start, testCacheDir } from '../src/support/skein-process.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';

const root = temporaryFolder('skein-dist');
let child: ChildProcess | undefined;
afterAll(() => {
  child?.kill('SIGKILL'); // where the test failed
});

function folderWith(name: string, files: Record<string, string>): string {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name, path)), { recursive: true });
    writeFileSync(join(root, name, path), content);
  }
  return join(root, name);
}

const filesOf = (folder: string) =>
  (readdirSync(folder, { recursive: true }) as string[])
    .filter((path) => statSync(join(folder, path)).isFile())
    .sort();

describe('a build that is published', () => {
  const WEEK_MS = 7 * 24 * 3600 * 1000;

  it('leaves what is the same, replaces what differs, and takes away what is gone', () => {
    const dist = folderWith('dist', { 'src/a.js': 'a', 'src/old/b.js': 'b', 'bin/cli.js': '1' });
    const { ino } = statSync(join(dist, 'src/a.js'));
    const next = folderWith('next', { 'src/a.js': 'a', 'bin/cli.js': '2', 'src/c.js': 'c' });
    publish(next, dist);
    expect(filesOf(dist)).toEqual(['bin/cli.js', 'src/a.js', 'src/c.js']);
    expect(existsSync(join(dist, 'src/old'))).toBe(false);
    expect(statSync(join(dist, 'src/a.js')).ino).toBe(ino);
    expect(readFileSync(join(dist, 'bin/cli.js'), 'utf8')).toBe('2');
    expect(existsSync(next)).toBe(false);
  });

  it('keeps the parts of earlier ones for a week, outside of the package', () => {
    const dist = folderWith('parts', { 'bin/chat-AAAAAAAA.js': 'a' });
    const long = new Date(Date.now() - 9 * WEEK_MS);
    utimesSync(join(dist, 'bin/chat-AAAAAAAA.js'), long, long);
    const rebuild = (part: string, now: number) =>
      publish(folderWith('next', { [`bin/chat-${part}.js`]: part }), dist, now);
    const now = Date.now();
    rebuild('BBBBBBBB', now);
    expect(filesOf(dist)).toEqual(['bin/.npmignore', 'bin/chat-AAAAAAAA.js', 'bin/chat-BBBBBBBB.js']);
    expect(readFileSync(join(dist, 'bin/.npmignore'), 'utf8')).toBe('/chat-AAAAAAAA.js\n');
    // Since the build that had it no more, not since it was made.
    rebuild('CCCCCCCC', now + WEEK_MS / 2);
    expect(readFileSync(join(dist, 'bin/.npmignore'), 'utf8')).toBe('/chat-AAAAAAAA.js\n/chat-BBBBBBBB.js\n');
    rebuild('BBBBBBBB', now + WEEK_MS + 1);
    expect(readFileSync(join(dist, 'bin/.npmignore'), 'utf8')).toBe('/chat-CCCCCCCC.js\n');
    rebuild('BBBBBBBB', now + 3 * WEEK_MS);
    expect(filesOf(dist)).toEqual(['bin/chat-BBBBBBBB.js']);
  });
});

/** A build whose parts all have other names, as after a change that all of them have in them. */
function renamedParts(from: string, to: string): string {
  cpSync(from, to, { recursive: true });
  const bin = join(to, 'bin');
  const parts = readdirSync(bin).filter((name) => /-[A-Z0-9]{8}\.js$/.test(name));
  const renamed = new Map(
    parts.map((name) => [name, name.replace(/.(?=\.js$)/, (last) => (last === 'Q' ? 'W' : 'Q'))]),
  );
  for (const name of readdirSync(bin).filter((one) => one.endsWith('.js'))) {
    const code = readFileSync(join(bin, name), 'utf8').replace(
      /(?<=["'`]\.\/)[\w.-]+\.js/g,
      (part) => renamed.get(part) ?? part,
    );
    rmSync(join(bin, name));
    writeFileSync(join(bin, renamed.get(name) ?? name), code, { mode: 0o755 });
  }
  rmSync(join(bin, '.npmignore'), { force: true });
  return to;
}

describe('a server', () => {
  it('goes on while what it was started from is built anew, with all that it has not needed yet', async () => {
    const project = fileURLToPath(new URL('../..', import.meta.url));
    const copy = join(root, 'package');
    mkdirSync(copy);
    for (const name of ['dist', 'package.json', 'binding.gyp', 'models/demo', 'build/Release']) {
      if (!existsSync(join(project, name))) continue;
      cpSync(join(project, name), join(copy, name), {
        recursive: true,
        filter: (file) => !/\.(map|d\.ts)$|\/obj/.test(file),
      });
    }
    symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'));
    const dist = join(copy, 'dist');
    const cli = join(dist, 'bin/skein.js');
    const server = await start([cli, 'serve', '--port', '0', '--cache-dir', testCacheDir], {});
    child = server.child;
    const before = new Set(readdirSync(join(dist, 'bin')));
    publish(renamedParts(dist, join(root, 'rebuilt')), dist);
    expect(readdirSync(join(dist, 'bin')).filter((name) => !before.has(name)).length).toBeGreaterThan(50);

    const asked = await postJson(`${server.url}/v1/chat/completions`, {
      model: 'gosling',
      max_tokens: 40,
      messages: [{ role: 'user', content: 'Yes or no?' }],
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: { enum: ['yes', 'no'] } },
      },
    });
    const { choices } = (await asked.json()) as { choices: { message: { content: string } }[] };
    expect(['"yes"', '"no"']).toContain(choices[0]!.message.content);
    for (const path of ['/', '/docs', '/openapi.json', '/metrics', '/docs/swagger-ui.css']) {
      expect((await fetch(server.url + path)).status, path).toBe(200);
    }
    expect(await server.stop()).toMatchObject({ code: 0 });
    expect(await runCli(['bench', 'compare', '--help'], { cli })).toMatchObject({ code: 0 });
  });
});
