import type { ExecutorMemory } from '../../callbacks/worker-messages.js';
import type { AdapterSlots, Executor, ExecutorOptions } from '../../engine/executors/executor.js';
import { BegunStep } from '../../engine/executors/fake/begun-step.js';
import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../engine/packed-call/sampling-batch.js';

import type { PictureRule } from '../../network/attention-mask.js';

/** A begun step; a begun forward, which has no sampling; or a change of memory, which is not waited for. */
type Entry =
  | { kind: 'step'; begun: BegunStep; error: unknown; hasRun: boolean }
  | { kind: 'forward'; batch: PackedBatch }
  | { kind: 'change'; change: () => void };

/**
 * Several begun steps over an executor that runs one at a time, as stages would: nothing overlaps, but all that the caller may rely on
 * holds, and nothing more. Steps and changes of memory happen in the order in which they came, and as late as possible:
 *
 *   begin A | copy | begin B | finish: A runs | begin C | finish: copy, B runs | ...
 *
 * With `isEager` steps run as soon as another one is begun after them; their results are there early, as
 * those of a real executor may be.
 */
export class StagedExecutor implements Executor {
  readonly name: Executor['name'];
  readonly instructionSet: string;
  readonly options: Readonly<ExecutorOptions>;
  readonly vocabSize: number;
  readonly promptRowWidth: number;
  readonly turnsByGrid: boolean;
  readonly pictureRule: PictureRule;
  readonly adapters?: AdapterSlots;
  readonly maxBegun: number;
  /** Steps that were begun and not finished, at most. */
  mostSeen = 0;
  readonly #inner: Executor;
  readonly #isEager: boolean;
  readonly #queue: Entry[] = [];
  #maySample = false;

  constructor(inner: Executor, stages: number, isEager = false) {
    const { name, instructionSet, options, vocabSize, promptRowWidth, turnsByGrid, adapters } = inner;
    this.name = name;
    this.instructionSet = instructionSet;
    this.options = options;
    this.vocabSize = vocabSize;
    this.promptRowWidth = promptRowWidth;
    this.pictureRule = inner.pictureRule;
    this.turnsByGrid = turnsByGrid;
    this.maxBegun = stages;
    this.#inner = inner;
    this.#isEager = isEager;
    if (adapters === undefined) return;
    this.adapters = {
      maxSlots: adapters.maxSlots,
      maxRank: adapters.maxRank,
      put: (slot, weights) => this.#change(() => adapters.put(slot, weights)),
      clear: (slot) => this.#change(() => adapters.clear(slot)),
    };
  }

  step(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#requireIdle();
    this.#inner.step(batch, sampling, output);
  }

  begin(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput): void {
    this.#push({ kind: 'step', begun: new BegunStep(batch, sampling, output), error: null, hasRun: false });
  }

  finish(): void {
    const entry = this.#oldest();
    if (entry.kind !== 'step') throw new Error('The oldest step was begun with beginForward');
    this.#queue.shift();
    this.#run(entry);
    if (entry.error !== null) throw entry.error;
  }

  beginForward(batch: PackedBatch): void {
    this.#push({ kind: 'forward', batch });
  }

  finishForward(): Float32Array {
    const entry = this.#oldest();
    if (entry.kind !== 'forward') throw new Error('The oldest step was begun with begin');
    this.#queue.shift();
    const logits = this.#inner.forward(entry.batch);
    this.#maySample = true;
    return logits;
  }

  forward(batch: PackedBatch): Float32Array {
    this.#requireIdle();
    this.#maySample = true;
    return this.#inner.forward(batch);
  }

  sample(sampling: SamplingBatch, output: SamplingOutput): void {
    if (!this.#maySample) throw new Error('There are no logits to sample from');
    this.#inner.sample(sampling, output);
  }

  copyBlocks(source: Int32Array, target: Int32Array): void {
    const [from, to] = [source.slice(), target.slice()];
    this.#change(() => this.#inner.copyBlocks(from, to));
  }

  areFinite(blocks: Int32Array): boolean {
    this.#requireIdle();
    return this.#inner.areFinite(blocks);
  }

  memory(): ExecutorMemory {
    return this.#inner.memory();
  }

  close(): void {
    this.#requireIdle();
    this.#inner.close();
  }

  #push(entry: Entry): void {
    this.#maySample = false;
    if (this.#isEager) for (const one of this.#queue) if (!this.#runEarly(one)) break;
    this.#queue.push(entry);
    const begun = this.#queue.filter(({ kind }) => kind !== 'change').length;
    if (begun > this.maxBegun) throw new Error(`${begun} steps are begun; there are ${this.maxBegun} stages`);
    this.mostSeen = Math.max(this.mostSeen, begun);
  }

  /** Returns false for a forward, whose logits have no place before it is finished. */
  #runEarly(entry: Entry): boolean {
    if (entry.kind === 'change') {
      entry.change();
      entry.change = () => {};
    } else if (entry.kind === 'step') this.#run(entry);
    return entry.kind !== 'forward';
  }

  /** The oldest begun step, after all changes that came before it. */
  #oldest(): Exclude<Entry, { kind: 'change' }> {
    this.#maySample = false;
    for (let entry = this.#queue[0]; entry !== undefined; entry = this.#queue[0]) {
      if (entry.kind !== 'change') return entry;
      this.#queue.shift();
      entry.change();
    }
    throw new Error('No step has been begun; begin() must come before finish().');
  }

  #run(entry: Extract<Entry, { kind: 'step' }>): void {
    if (entry.hasRun) return;
    entry.hasRun = true;
    const { batch, sampling, output } = entry.begun;
    const touched = entry.begun.whatWasTouched();
    if (touched !== null) throw new Error(`${touched} was changed between begin() and finish()`);
    try {
      this.#inner.step(batch, sampling, output);
    } catch (error) {
      entry.error = error;
    }
  }

  #change(change: () => void): void {
    this.#maySample = false;
    if (this.#queue.length === 0) change();
    else this.#queue.push({ kind: 'change', change });
  }

  #requireIdle(): void {
    if (this.#queue.some(({ kind }) => kind !== 'change')) {
      throw new Error('A begun step is running; finish() must come first.');
    }
    for (const entry of this.#queue.splice(0)) this.#runEarly(entry);
  }
}
