import { describe, expect, it } from 'vitest';
import { describeMachine } from '../../../base/machine.js';
import { type BenchDefinition, defineBench, forEachKind } from '../../../tools/bench/bench.js';
import { modelOf, positiveOf, roundsFlag, secondsFlag } from '../../../tools/bench/flags.js';
import { machineLine } from '../../../tools/support/machine-words.js';

const FLAGS = { ...roundsFlag(3), ...secondsFlag(2) } as const;
type Definition = BenchDefinition<typeof FLAGS>;

/** A bench that reports the flags it was given, and what it printed and wrote. */
function stage(more: Partial<Definition> = {}) {
  const seen = { printed: [] as string[], progress: [] as string[], written: [] as string[][] };
  const bench = defineBench<typeof FLAGS>({
    flags: FLAGS,
    document: 'a.md',
    sections: ['one'],
    run(flags, { progress, report }, rest) {
      progress('begun');
      report({
        section: 'one',
        conditions: `rounds ${flags.rounds}`,
        lines: [...Object.keys(flags), ...rest],
      });
    },
    ...more,
  });
  const start = (...args: string[]) =>
    bench.start(args, {
      print: (text) => seen.printed.push(text),
      progress: (line) => seen.progress.push(line),
      write: (...written) => seen.written.push(written),
    });
  return { seen, start, bench };
}

describe('defineBench', () => {
  it('prints the machine, the conditions and the note in front of the lines', async () => {
    const { seen, start } = stage();
    await start('--rounds', '5', '--note', 'A quiet night.');
    const head = `${machineLine(describeMachine())}; rounds 5. A quiet night.`;
    expect(seen.printed).toEqual([`${head}\n\nrounds\nseconds`]);
    expect(seen.progress).toEqual(['begun']);
    expect(seen.written).toEqual([]);
  });

  it('writes the same text into the section of its document', async () => {
    const { seen, start } = stage();
    await start('--write');
    expect(seen.written).toEqual([['a.md', 'one', seen.printed[0]]]);
  });

  it('refuses sections that it has not named, and --write where it has no document', async () => {
    const report = { section: 'two', conditions: '', lines: [] };
    const other = stage({ run: (_, output) => output.report(report) });
    await expect(other.start()).rejects.toThrow('a.md: expected one of one, found two.');
    const none = stage({ document: null, sections: [] });
    await expect(none.start('--write')).rejects.toThrow('--write: this bench has no section of a document.');
    expect(none.seen.printed).toEqual([]);
    await none.start();
    expect(none.seen.printed).toHaveLength(1);
  });

  it('hands on what stands behind --, where the bench says that it takes it', async () => {
    await expect(stage().start('--', '--threads', '1')).rejects.toThrow(
      'nothing after --, found --threads 1',
    );
    const { seen, start } = stage({ rest: 'FLAGS OF SERVE' });
    await start('--rounds', '1', '--', '--threads', '1');
    expect(seen.printed[0]).toMatch(/\n--threads\n1$/);
  });

  it('refuses flags that are not in the table', async () => {
    await expect(stage().start('--round', '1')).rejects.toThrow('--round');
  });
});

describe('the flags of benches', () => {
  it('say what a value must be', () => {
    expect([positiveOf('seconds', '0.1'), positiveOf('seconds', '3')]).toEqual([0.1, 3]);
    for (const value of ['', ' ', '0', '-1', 'x', 'Infinity'])
      expect(() => positiveOf('seconds', value)).toThrow('--seconds: expected a number above 0, found');
    expect(modelOf({ model: 'dir' })).toBe('dir');
    expect(() => modelOf({ model: '' })).toThrow('--model: expected a folder with a model or a GGUF file');
  });
});

describe('forEachKind', () => {
  it('names a section for each kind of machine', () => {
    expect(forEachKind('a', 'b')).toEqual(['a-avx2', 'a-avx512', 'b-avx2', 'b-avx512']);
  });
});
