import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-completion');
const script = join(folder, 'skein.bash');

beforeAll(async () => {
  const { code, stdout } = await runCli(['completion', 'bash']);
  expect(code).toBe(0);
  writeFileSync(script, stdout);
  mkdirSync(join(folder, 'files/a model'), { recursive: true });
  writeFileSync(join(folder, 'files/in.jsonl'), '');
});

/** Completions that bash offers at the end of each line. Words are parted where bash parts them. */
async function complete(...lines: string[][]): Promise<string[][]> {
  const asked = lines.map((words) => {
    const list = words.map((word) => `'${word}'`).join(' ');
    return `COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _skein; printf '%s\\n' "\${COMPREPLY[@]}" '--'`;
  });
  const code = `set -u; cd '${folder}/files'; source '${script}'; ${asked.join('; ')}`;
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', code]);
  expect(stderr).toBe('');
  return stdout
    .split('--\n')
    .slice(0, -1)
    .map((text) => text.split('\n').filter(Boolean).sort());
}

describe('skein completion bash', () => {
  it('completes commands, options of the command, values, and files', async () => {
    const [
      commands,
      ofC,
      options,
      ofBatch,
      weights,
      afterEquals,
      policy,
      shells,
      port,
      files,
      models,
      nested,
    ] = await complete(
      ['skein', ''],
      ['skein', 'c'],
      ['skein', 'run', '--te'],
      ['skein', 'batch', '--err'],
      ['skein', 'serve', '--weights', ''],
      ['skein', 'serve', '--weights', '=', 'int'],
      ['skein', 'serve', '--model', 'm', '--scheduler-policy', 'M'],
      ['skein', 'completion', ''],
      ['skein', 'serve', '--port', ''],
      ['skein', 'batch', 'i'],
      ['skein', 'serve', '--model', ''],
      ['skein', 'bench', 'compare', '--j'],
    );
    expect(commands).toEqual(
      expect.arrayContaining([
        'batch',
        'bench',
        'build',
        'chat',
        'completion',
        'info',
        'new',
        'pull',
        'run',
        'serve',
        'top',
      ]),
    );
    expect(ofC).toEqual(['chat', 'completion']);
    expect(options).toEqual(['--temperature']);
    expect(ofBatch).toEqual(['--error-file']);
    expect(weights).toEqual(['auto', 'bf16', 'f32', 'int4', 'int8', 'stored']);
    expect(afterEquals).toEqual(['int4', 'int8']);
    expect(policy).toEqual(['MAX_UTILIZATION']);
    expect(shells).toEqual(['bash', 'fish', 'zsh']);
    expect(port).toEqual([]);
    expect(files).toEqual(['in.jsonl']);
    expect(models).toEqual(['a model', 'in.jsonl']);
    expect(nested).toEqual(['--json']);
  });

  it('knows the options of every command that --help lists', async () => {
    const { stdout: root } = await runCli(['--help']);
    const names = Array.from(root.matchAll(/^ {2}([a-z]+) /gm), (match) => match[1]!).filter(
      (name) => name !== 'help',
    );
    expect(names.length).toBeGreaterThan(9);
    const helps = await Promise.all(names.map((name) => runCli([name, '--help'])));
    const offered = await complete(...names.map((name) => ['skein', name, '--']));
    for (const [index, { stdout }] of helps.entries()) {
      const listed = Array.from(stdout.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm), (match) => match[1]!);
      expect(offered[index], names[index]).toEqual(listed.sort());
    }
  });
});

describe('skein completion', () => {
  it('writes for zsh and fish too, and refuses other shells by name', async () => {
    const [zsh, fish, other] = await Promise.all(
      ['zsh', 'fish', 'tcsh'].map((shell) => runCli(['completion', shell])),
    );
    expect(zsh!.stdout).toMatch(/^#compdef skein\n/);
    expect(fish!.stdout).toContain(
      "complete -c skein -n '__skein_at \\'serve\\'' -l weights -r -f -a 'auto f32",
    );
    expect(other!.stderr).toMatch(/^skein: .*tcsh.*bash, zsh, fish[^\n]*\n$/);
    expect([zsh!.code, fish!.code, other!.code]).toEqual([0, 0, 2]);
  });
});
