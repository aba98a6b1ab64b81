import { MAX_INT32 } from '../../../../base/int32.js';
import type { PackedBatch } from '../../../packed-call/packed-batch.js';
import type { ExecutorOptions } from '../../executor.js';
import { stateRowCounts } from '../state-row-counts.js';
import { checkEntries } from './fields.js';

type StateOptions = Pick<ExecutorOptions, 'numStateSlots' | 'numDraftSlots' | 'stateDraftRows'>;

/** Checks the slots of a batch's states, its drafts, and the snapshots that it makes: no slot is written to twice. */
export function checkStates(batch: PackedBatch, options: StateOptions): void {
  const { numSequences, stateSlots, snapshotStart, snapshotSlots } = batch;
  const { numStateSlots = 0, stateDraftRows = 0 } = options;
  checkEntries(stateSlots, numSequences, -1, numStateSlots, 'stateSlots');
  checkEntries(batch.stateReplays, numSequences, 0, stateDraftRows + 1, 'stateReplays');
  checkEntries(batch.stateDrafts, numSequences, 0, MAX_INT32, 'stateDrafts');
  for (let sequence = 0; sequence < numSequences; sequence++) checkDraft(batch, options, sequence);
  const most = Math.min(batch.snapshotRows.length, snapshotSlots.length);
  checkEntries(snapshotStart, numSequences + 1, 0, most + 1, 'snapshotStart');
  const made: number[] = [];
  for (let sequence = 0; sequence < numSequences; sequence++) {
    checkRows(batch, sequence);
    made.push(...snapshotSlots.subarray(snapshotStart[sequence]!, snapshotStart[sequence + 1]!));
  }
  checkEntries(Int32Array.from(made), made.length, 0, numStateSlots, 'snapshotSlots');
  const written = [...stateSlots.subarray(0, numSequences), ...made].sort((a, b) => a - b);
  const twice = written.find((slot, i) => slot >= 0 && slot === written[i - 1]);
  if (twice !== undefined) throw new Error(`slot ${twice} for states is written to twice.`);
}

/** The rows of a draft have places in the log of the sequence's slot. */
function checkDraft(
  batch: PackedBatch,
  { numDraftSlots = 0, stateDraftRows = 0 }: StateOptions,
  sequence: number,
): void {
  const { rows, replayed, keeps, certain, firstLogged, begins } = stateRowCounts(batch, sequence);
  const drafts = batch.stateDrafts[sequence]!;
  const given = `stateDrafts[${sequence}] is ${drafts}`;
  if (!keeps && drafts !== replayed + rows) {
    throw new Error(
      `${given}, but at most its ${rows} rows can be a draft, or these and all ${replayed} before them.`,
    );
  }
  if (begins && replayed > 0) {
    throw new Error(`stateReplays[${sequence}] is ${replayed}, but the sequence begins in this batch.`);
  }
  if (replayed + drafts === 0) return;
  const slot = batch.stateSlots[sequence]!;
  if (slot < 0 || slot >= numDraftSlots) {
    throw new Error(`stateSlots[${sequence}] is ${slot}, but drafts need a slot in [0, ${numDraftSlots}).`);
  }
  const logged = firstLogged + rows - certain;
  if (logged <= stateDraftRows) return;
  throw new Error(`${given}, so ${logged} rows are to be logged, but a slot has ${stateDraftRows}.`);
}

/** Checks that snapshots lie after rows of their sequence, in ascending order. */
function checkRows({ queryStart, snapshotStart, snapshotRows }: PackedBatch, sequence: number): void {
  let before = queryStart[sequence]! - 1;
  for (let i = snapshotStart[sequence]!; i < snapshotStart[sequence + 1]!; i++) {
    const row = snapshotRows[i]!;
    if (row <= before || row >= queryStart[sequence + 1]!) {
      throw new Error(
        `snapshotRows[${i}] is ${row}, but it must be a row of sequence ${sequence} after that of its snapshot before.`,
      );
    }
    before = row;
  }
}
