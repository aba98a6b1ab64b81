import { describe, expect, it } from 'vitest';
import { GROUPS } from '../../callbacks/options/option.js';
import { flagName, OPTIONS } from '../../src/options/table.js';
import { runInTerminal } from './support/pty.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

async function helpOf(command: readonly string[], columns: number): Promise<string[]> {
  const { code, stdout } = await runCli([...command, '--help'], { columns });
  expect(code).toBe(0);
  return linesOf(stdout);
}

const linesOf = (text: string) => text.replaceAll('\r', '').trimEnd().split('\n');

const COMMANDS = [
  ...[
    'serve',
    'gateway',
    'work',
    'rank',
    'list',
    'rm',
    'run',
    'chat',
    'top',
    'batch',
    'build',
    'pull',
    'info',
    'setup',
    'new',
    'simulate',
    'bench',
    'completion',
  ],
  'bench compare',
];

describe('skein serve --help', () => {
  it.each([40, 80, 120, 200])('fits into %i columns, and says the same in each', async (columns) => {
    const lines = await helpOf(['serve'], columns);
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(columns);
    const words = lines.join('').replaceAll(/\s/g, '');
    for (const { name, flag } of OPTIONS.filter(({ isForServe }) => isForServe)) {
      expect(words).toContain(`--${flagName(name)}`);
      expect(words, name).toContain(flag.help.replaceAll(/\s/g, ''));
    }
    // A wide terminal is made use of.
    const longest = Math.max(...lines.map((line) => line.length));
    expect(longest).toBeGreaterThan(0.8 * columns);
  });

  it('has the width of the terminal that it is shown in', async () => {
    const terminal = runInTerminal(['serve', '--help'], { columns: 40 });
    expect(await terminal.ended).toBe(0);
    expect(linesOf(terminal.shown())).toEqual(await helpOf(['serve'], 40));
  });

  it('has ten common options first, then the groups', async () => {
    const { stdout } = await runCli(['serve', '--help']);
    const headings = Array.from(stdout.matchAll(/^([A-Z][^\n]*):$/gm), ([, heading]) => heading);
    expect(headings.slice(0, 1 + GROUPS.length)).toEqual([
      'Common options',
      ...GROUPS.filter((group) => group !== 'Work queue'),
      'Options',
    ]);
    const [, common] = /Common options:\n([\s\S]*?)\n\n/.exec(stdout)!;
    const names = Array.from(common!.matchAll(/^ {2}(--[\w-]+)/gm), ([, flag]) => flag);
    expect(names).toHaveLength(10);
    expect(names).toEqual(expect.arrayContaining(['--model', '--port', '--kv-cache-tokens', '--threads']));
    for (const former of ['--max-tokens', '--max-model-len', '--gpu-memory-utilization']) {
      expect(stdout).not.toMatch(new RegExp(`^ *${former}\\b`, 'm'));
    }
  });
});

describe('--help of every command', () => {
  it.each(COMMANDS)('%s fits into 40 columns', async (command) => {
    const lines = await helpOf(command.split(' '), 40);
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(40);
  });

  it.each(COMMANDS)('%s without a terminal shows examples that can be copied', async (command) => {
    const { stdout } = await runCli([...command.split(' '), '--help']);
    const lines = stdout.split('\n');
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(80);
    for (const [at, line] of lines.entries()) {
      if (!/^ +skein /.test(line) || line.endsWith('\\')) continue;
      // After a whole command comes the next one, or a text of its own.
      expect(lines[at + 1], line).toMatch(/^$| skein |^\S/);
    }
  });

  it('gives each option its meaning', async () => {
    for (const command of ['simulate', 'build', 'setup']) {
      const { stdout } = await runCli([command, '--help']);
      const options = stdout
        .split('\n')
        .join(' ')
        .replaceAll(/\s+/g, ' ')
        .split(/ (?=--[a-z])/);
      for (const option of options) expect(option).not.toMatch(/> \(?default/);
    }
    const setup = (await runCli(['setup', '--help'])).stdout;
    for (const what of ['tensorflow', 'onnx', 'nats', 'tracing', 'zeromq']) {
      expect(setup).toMatch(new RegExp(`^  ${what} {2,}\\S`, 'm'));
    }
    expect((await runCli(['build', '--help'])).stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /--output <DIR> .*it has to be given .*auto, f32, bf16, int8, int4 or stored; .*default: one for each/,
    );
    const gateway = (await runCli(['gateway', '--help'])).stdout.replaceAll(/\s+/g, ' ');
    expect(gateway).toMatch(/--cache-dir <DIR> Folder for what workers send/);
    expect(gateway).toMatch(/--max-body-bytes <BYTES> [^()]* A unit is understood: 1\.5GB\./);
    const work = (await runCli(['work', '--help'])).stdout.replaceAll(/\s+/g, ' ');
    expect(work).toMatch(/--model <\[NAME=\]PATH> The model to run/);
  });
});
