import {
  FINISH_END_ID,
  FINISH_LENGTH,
  FINISH_NOT_FINISHED,
  FINISH_STOP_WORDS,
  type FinishCode,
} from '../../callbacks/response-batch.js';
import { countEndings } from '../../callbacks/stop-words.js';
import type { SamplingOutput } from '../packed-call/sampling-batch.js';
import { BeamHypotheses, bestOf, type Hypothesis, scoreOf } from './beam-hypotheses.js';
import { type BeamParams, candidatesPerBeam } from './beam-params.js';
import { GeneratedSequence } from './generated-sequence.js';
import type { RequestSpec } from './request-spec.js';
import type { DrawnRows, GroupChange, SequenceGroup } from './sequence-group.js';

/** A beam with one more token. */
interface Candidate {
  beam: number;
  token: number;
  logProb: number;
  /** Sum of the log-probs of all its tokens. */
  cumLogProb: number;
  /** Row of the output that the candidate comes from. */
  row: number;
}

/**
 * Beam search. Each step every beam brings its best candidates, and all of them are put in the order of the sum of their
 * log-probs (of equal ones the lower beam goes first, then the lower token):
 *
 *   2 beams, end_id e        sums          place 0   beam 1 + a   -3.1    goes on as beam 0
 *     beam 0   a -3.4  b -3.9 ...                1   beam 1 + e   -3.2    has ended: among the first 2, so it is kept
 *     beam 1   a -3.1  e -3.2 ...                2   beam 0 + a   -3.4    goes on as beam 1
 *                                                3   beam 0 + b   -3.9
 *   parents [1, 0]
 *
 * Candidates that end are kept if they are among the first `width`, and good enough compared with other ended
 * ones; the best `width` of the candidates that do not end go on. A search that begins with fewer candidates
 * than beams has beams of sum
 * -Infinity, which are never answered as long as there are others.
 *
 * A pause drops all generated tokens, since it is unknown which of them will stay; the same bits come again.
 */
export class BeamSearch implements SequenceGroup {
  readonly #spec: RequestSpec;
  readonly #params: BeamParams;
  readonly #pool: BeamHypotheses;
  readonly #numCandidates: number;
  #beams: GeneratedSequence[];
  #live: readonly GeneratedSequence[];
  #first: GeneratedSequence;
  /** The answered sequences, once the search has ended. */
  #answer: readonly GeneratedSequence[] | null = null;
  /** Number of steps of the search so far, in this run, and in the run that got furthest. */
  #steps = 0;
  #furthest = 0;
  #reported = 0;

  constructor(spec: RequestSpec, params: BeamParams, vocabSize: number) {
    this.#spec = spec;
    this.#params = params;
    this.#pool = new BeamHypotheses(params, spec.maxNewTokens);
    const endings = countEndings(spec.endId, spec.stopWords);
    const wanted = Math.max(candidatesPerBeam(params, endings), spec.topLogProbs);
    this.#numCandidates = Math.min(wanted, vocabSize);
    this.#beams = this.#begin();
    this.#live = this.#beams;
    this.#first = this.#beams[0]!;
  }

  get live(): readonly GeneratedSequence[] {
    return this.#live;
  }

  get first(): GeneratedSequence {
    return this.#first;
  }

  /** Number of candidates that each of its rows lists. */
  get numCandidates(): number {
    return this.#numCandidates;
  }

  /**
   * The answer. Until the end these are the best of all ended and unended sequences, the latter scored as if they ended now.
   */
  get sequences(): readonly GeneratedSequence[] {
    return this.#answer ?? this.#best();
  }

  get hasNews(): boolean {
    return this.#furthest > this.#reported;
  }

  noteReported(): void {
    this.#reported = this.#furthest;
  }

  rows(fromContext: boolean): readonly GeneratedSequence[] {
    return fromContext ? this.#live.slice(0, 1) : this.#live;
  }

  take({ output, firstRow, isLast, fromContext }: DrawnRows): GroupChange {
    this.#steps++;
    const newTokens = this.#steps > this.#furthest ? 1 : 0;
    this.#furthest = Math.max(this.#furthest, this.#steps);
    const going = this.#sortOut(this.#candidates(output, firstRow, fromContext), output, isLast);
    if (going.length === 0 || this.#pool.isOver(going[0]!.cumLogProb, this.#steps)) {
      this.#end(this.#pool.best.map(({ sequence }) => sequence));
      return { newTokens, parents: null };
    }
    const parents = this.#goOn(going, output);
    return { newTokens, parents: fromContext ? parents.map(() => 0) : parents };
  }

  stop(reason: FinishCode): void {
    for (const sequence of this.#answer ?? this.#live) sequence.finishReason = reason;
    this.#end(this.sequences);
  }

  /** Does nothing: beams are one answer, and are not stopped one by one. */
  stopSequence(): null {
    return null;
  }

  pause(): void {
    this.#steps = 0;
    this.#pool.clear();
    this.#beams = this.#begin();
    this.#live = this.#beams;
    this.#first = this.#beams[0]!;
  }

  #begin(): GeneratedSequence[] {
    const first = new GeneratedSequence(this.#spec, 0);
    return Array.from({ length: this.#params.width }, (_, beam) => {
      const copy = beam === 0 ? first : first.copy(beam);
      if (beam > 0) copy.cumLogProb = Number.NEGATIVE_INFINITY;
      return copy;
    });
  }

  /** All candidates of the step, the best first. */
  #candidates(output: SamplingOutput, firstRow: number, fromContext: boolean): Candidate[] {
    const candidates: Candidate[] = [];
    const numBeams = fromContext ? 1 : this.#beams.length;
    for (let beam = 0; beam < numBeams; beam++) {
      const row = firstRow + beam;
      const first = output.topStart[row]!;
      for (let i = first; i < first + this.#numCandidates; i++) {
        const [token, logProb] = [output.topTokens[i]!, output.topLogProbs[i]!];
        const cumLogProb = this.#beams[beam]!.cumLogProb + logProb;
        if (cumLogProb > Number.NEGATIVE_INFINITY) candidates.push({ beam, token, logProb, cumLogProb, row });
      }
    }
    return candidates.sort((a, b) => b.cumLogProb - a.cumLogProb || a.beam - b.beam || a.token - b.token);
  }

  /** Keeps candidates that end a hypothesis, if they are good enough; returns those that go on. */
  #sortOut(candidates: readonly Candidate[], output: SamplingOutput, isLast: boolean): Candidate[] {
    const { width } = this.#params;
    const going: Candidate[] = [];
    for (const [place, candidate] of candidates.entries()) {
      if (place >= width && going.length === width) break;
      const reason = this.#endingOf(candidate, isLast);
      if (reason !== FINISH_NOT_FINISHED) {
        if (place < width) this.#keep(candidate, output, reason);
      } else if (going.length < width) going.push(candidate);
    }
    return going;
  }

  #endingOf({ beam, token }: Candidate, isLast: boolean): FinishCode {
    if (token === this.#spec.endId) return FINISH_END_ID;
    if (this.#beams[beam]!.wouldStop(token)) return FINISH_STOP_WORDS;
    return isLast ? FINISH_LENGTH : FINISH_NOT_FINISHED;
  }

  #keep(candidate: Candidate, output: SamplingOutput, reason: FinishCode): void {
    const { beam, token, logProb, cumLogProb, row } = candidate;
    const score = scoreOf(cumLogProb, this.#steps, this.#params.lengthPenalty);
    if (!this.#pool.takes(score)) return;
    const sequence = this.#beams[beam]!.copy(beam);
    // The end token is not part of the sequence, but its log-prob counts.
    if (reason === FINISH_END_ID) sequence.cumLogProb = cumLogProb;
    else sequence.extend(token, logProb, output, row);
    sequence.finishReason = reason;
    this.#pool.add({ sequence, score });
  }

  /** Makes the candidates the beams; returns their parents. */
  #goOn(going: readonly Candidate[], output: SamplingOutput): number[] {
    const old = this.#beams;
    const isTaken = old.map(() => false);
    const beams = going.map(({ beam }, index) => {
      const isFirst = !isTaken[beam];
      isTaken[beam] = true;
      return { base: old[beam]!, isFirst, index };
    });
    // Copies are made first, since a beam that goes on itself is changed in place.
    const next = beams.map(({ base, isFirst, index }) => (isFirst ? base : base.copy(index)));
    for (const [i, { token, logProb, row }] of going.entries()) next[i]!.extend(token, logProb, output, row);
    const parents = going.map(({ beam }) => beam);
    while (next.length < this.#params.width) {
      const dead = next[0]!.copy(next.length);
      dead.cumLogProb = Number.NEGATIVE_INFINITY;
      next.push(dead);
      parents.push(parents[0]!);
    }
    this.#beams = next;
    this.#live = next;
    this.#first = next[0]!;
    return parents;
  }

  /** Ends the search. If fewer than `width` sequences could be completed, the rest are empty. */
  #end(answer: readonly GeneratedSequence[]): void {
    const missing = Array.from({ length: this.#params.width - answer.length }, (_, i) => {
      const empty = new GeneratedSequence(this.#spec, answer.length + i);
      empty.cumLogProb = Number.NEGATIVE_INFINITY;
      empty.finishReason = FINISH_LENGTH;
      return empty;
    });
    this.#answer = [...answer, ...missing];
    this.#live = [];
  }

  #best(): GeneratedSequence[] {
    const { lengthPenalty, width } = this.#params;
    const going: Hypothesis[] = this.#live.map((sequence) => ({
      sequence,
      score: scoreOf(sequence.cumLogProb, Math.max(1, this.#steps), lengthPenalty),
    }));
    return bestOf([...this.#pool.best, ...going], width).map(({ sequence }) => sequence);
  }
}
