import { describe, expect, it } from 'vitest';
import { FAULTS } from '../../../tools/faults/kinds/index.js';
import { commandOf, FLAGS, HELP, runOptions } from '../../../tools/faults/options.js';
import { flagsTable } from '../../../tools/faults/report.js';
import { type DrawOptions, drawRequests } from '../../../tools/faults/requests/draw-requests.js';
import { REQUEST_KINDS } from '../../../tools/faults/requests/kinds.js';
import { drawSchedule, parsePlan, planText } from '../../../tools/faults/schedule.js';
import { readDocument } from '../../support/documents.js';

const COUNTS = { kills: 3, stops: 2, erasures: 1 };

describe('a plan of faults', () => {
  it('is the same for the same seed, and another for another', () => {
    const plan = drawSchedule(COUNTS, 5_000, 7);
    expect(plan).toHaveLength(6);
    expect(drawSchedule(COUNTS, 5_000, 7)).toEqual(plan);
    expect(drawSchedule(COUNTS, 5_000, 8)).not.toEqual(plan);
    expect(plan.map(({ at }) => at)).toEqual(plan.map(({ at }) => at).toSorted((a, b) => a - b));
    for (const { at } of plan) expect(at > 0 && at < 5_000).toBe(true);
  });

  it('keeps its faults where another one joins them', () => {
    const plan = drawSchedule(COUNTS, 5_000, 7);
    const longer = drawSchedule({ ...COUNTS, kills: 4, clocks: 1 }, 5_000, 7);
    expect(longer).toEqual(expect.arrayContaining(plan));
    expect(longer).toHaveLength(8);
  });

  it('is read as it is written', () => {
    const plan = drawSchedule(COUNTS, 5_000, 7);
    expect(parsePlan(planText(plan))).toEqual(plan);
    expect(planText(parsePlan('stop@300/12,kill@120/7'))).toBe('kill@120/7,stop@300/12');
    expect(parsePlan(planText([]))).toEqual([]);
    expect(() => parsePlan('kill@x')).toThrow('"kill@x" is no fault of a plan; one is KIND@TOKENS/SEED');
    expect(() => parsePlan('flood@1/2')).toThrow('There is no fault "flood"; there are kill, stop,');
  });
});

describe('flags of a run', () => {
  it('are one for each kind of fault, with its help', () => {
    for (const { flag, help } of FAULTS) {
      expect(Object.keys(FLAGS)).toContain(flag);
      expect(HELP).toContain(`--${flag} N`);
      expect(HELP).toContain(help);
    }
    expect(new Set(FAULTS.map(({ name }) => name)).size).toBe(FAULTS.length);
    expect(readDocument('docs/architecture/faults.md')).toContain(flagsTable());
  });

  it('ask for one fault of each kind where none is named', () => {
    const { counts } = runOptions({ requests: '250' });
    expect(new Set(Object.values(counts))).toEqual(new Set([2]));
    expect(runOptions({ kills: '4' }).counts).toMatchObject({ kills: 4, stops: 0 });
    expect(() => runOptions({ kills: 'many' })).toThrow('--kills is "many"; it must be a whole number.');
  });

  it('are those of the command that repeats a run', () => {
    const options = runOptions({ seed: '7', requests: '40', kills: '2', workers: '3' });
    expect(commandOf(options)).toBe('npm run faults -- --seed 7 --requests 40 --kills 2');
    expect(commandOf(options, { only: [17], at: 'kill@5/9' })).toBe(
      'npm run faults -- --seed 7 --requests 40 --only 17 --kills 2 --at kill@5/9',
    );
  });
});

describe('requests of a run', () => {
  const drawn = (count: number, seed: number, more: Partial<DrawOptions> = {}) =>
    drawRequests(count, seed, { isOwn: true, kind: '', ...more }).map(({ index, kind, script }) => ({
      index,
      kind,
      key: script.key,
    }));
  const kindsOf = (more: Partial<DrawOptions>) => new Set(drawn(60, 7, more).map(({ kind }) => kind));

  it('are of all kinds, and the same for the same seed', () => {
    const requests = drawn(60, 7);
    expect(kindsOf({})).toEqual(new Set(REQUEST_KINDS.map(({ name }) => name)));
    expect(drawn(60, 7)).toEqual(requests);
    expect(drawn(80, 7).slice(0, 60)).toEqual(requests);
    expect(drawn(60, 8)).not.toEqual(requests);
  });

  it('are of the kinds that a fleet takes, or that are named', () => {
    expect(kindsOf({ isOwn: false })).not.toContain('beams');
    expect(kindsOf({ kind: 'batch' })).toEqual(new Set(['batches and files']));
    expect(() => kindsOf({ kind: 'poems' })).toThrow('No kind of request has "poems" in its name.');
  });
});
