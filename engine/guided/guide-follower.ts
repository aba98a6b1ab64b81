import { messageOf } from '../../base/error-text.js';
import type { Automaton } from './automaton.js';
import { compileGuide } from './compile-guide.js';
import { FollowedGuide } from './followed-guide.js';
import { forcedBehind } from './forced-tokens.js';
import { GrammarMatcher, SearchLimitError } from './grammar-matcher.js';
import { GuideBudgetError } from './guide-budget.js';
import type {
  GuideFailure,
  GuideReply,
  GuideRequest,
  ReadingReply,
  ReadingRequest,
} from './guide-messages.js';
import { KeptMatchers } from './kept-matchers.js';
import { type Ahead, MaskJob, StrayTokenError } from './mask-job.js';
import type { Places } from './places.js';
import type { TokenTrie } from './token-trie.js';

/** Work of one turn, in places: about a millisecond. */
const FUEL = 8_000;
/** Work that looking ahead may take for all sequences of a step: some milliseconds. */
const LOOK_AHEAD_COST = 50_000;
const NO_TOKENS = new Int32Array(0);

type OpenRequest = Extract<GuideRequest, { type: 'open' }>;

/**
 * Follows the guides of sequences token by token, and finds the tokens that may come next. It knows nothing of threads:
 * `handle` takes requests, and `work` works a turn at a time, so that more can be asked for between two turns.
 *
 *   masks that are known           at once, when they are asked for
 *   the others                     in turns, one request after the other: whose masks take long waits for them alone
 *   what a grammar forces          when nothing else is to be done
 */
export class GuideFollower {
  readonly #trie: TokenTrie;
  readonly #reply: (reply: GuideReply) => void;
  readonly #read: (request: ReadingRequest) => void;
  readonly #kept = new KeptMatchers();
  /** Guides by their first sequence. */
  readonly #guides = new Map<number, FollowedGuide>();
  readonly #bySequence = new Map<number, FollowedGuide>();
  /** Requests whose guide is being read, by the guide's key. */
  readonly #reading = new Map<string, OpenRequest[]>();
  /** Guides with waiting jobs, in the order of their turns: the next one is first. */
  readonly #waiting = new Map<FollowedGuide, MaskJob[]>();
  #ahead: Ahead[] = [];
  #done: number[] = [];
  #failures: GuideFailure[] = [];
  readonly #noteBusy: (first: number) => void;

  /**
   * `read`: starts to read a guide, whose automaton is then passed to `take`; default: it is read at once, here. `noteBusy`:
   * called with the first sequence of the guide that is worked on from now on; -1: none.
   */
  constructor(
    trie: TokenTrie,
    reply: (reply: GuideReply) => void,
    read: ((request: ReadingRequest) => void) | null = null,
    noteBusy: (first: number) => void = () => {},
  ) {
    this.#noteBusy = noteBusy;
    this.#trie = trie;
    this.#reply = reply;
    this.#read = read ?? ((request) => this.take(compileGuide(request)));
  }

  /** Takes a request; replies at once if that takes no work. */
  handle(request: GuideRequest): void {
    if (request.type === 'open') this.#open(request);
    else if (request.type === 'close') this.#close(request.first);
    else this.#ask(request);
    this.#kept.trim();
    this.#flush();
  }

  /** True if there is something for `work` to do. */
  get hasWork(): boolean {
    return this.#waiting.size > 0 || this.#ahead.length > 0;
  }

  /** Bytes of memory that guides take here, roughly; without automata in use. */
  get size(): number {
    return this.#kept.size;
  }

  /** Works for one turn: about a millisecond. */
  work(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#lookAhead();
      return;
    }
    const [guide, jobs] = first;
    this.#waiting.delete(guide);
    if (!this.#goOn(guide, jobs[0]!, FUEL)) jobs.shift();
    if (jobs.length > 0) this.#waiting.set(guide, jobs);
    this.#flush();
  }

  /** Takes a guide that was read. */
  take({ key, automaton, error, isInvalid }: ReadingReply): void {
    const requests = this.#reading.get(key) ?? [];
    this.#reading.delete(key);
    for (const request of requests) {
      if (automaton === null) this.#reply({ type: 'opened', first: request.first, error, isInvalid });
      else this.#begin(request, key, automaton);
    }
    this.#flush();
  }

  #open(request: OpenRequest): void {
    const { type, guide } = request.guide;
    const key = `${type} ${guide}`;
    const matcher = this.#kept.take(key);
    if (matcher !== null) {
      this.#follow(request, key, matcher);
      return;
    }
    const others = this.#reading.get(key);
    if (others !== undefined) {
      others.push(request);
      return;
    }
    this.#reading.set(key, [request]);
    this.#read({ key, guide: request.guide, first: request.first });
  }

  #begin(request: OpenRequest, key: string, automaton: Automaton): void {
    const known = this.#kept.take(key);
    if (known !== null) {
      this.#follow(request, key, known);
      return;
    }
    try {
      const matcher = new GrammarMatcher(automaton);
      this.#kept.add(key, matcher);
      this.#follow(request, key, matcher);
    } catch (error) {
      if (!(error instanceof GuideBudgetError)) throw error;
      this.#reply({ type: 'opened', first: request.first, error: error.message, isInvalid: true });
    }
  }

  #follow(request: OpenRequest, key: string, matcher: GrammarMatcher): void {
    const guide = new FollowedGuide(request, key, matcher, this.#trie);
    this.#guides.set(request.first, guide);
    for (let i = 0; i < request.count; i++) this.#bySequence.set(request.first + i, guide);
    this.#add(guide, MaskJob.ofBeginning(guide));
  }

  #close(first: number): void {
    for (const [key, requests] of this.#reading) {
      const left = requests.filter((request) => request.first !== first);
      // A guide that no request waits for any more is still read, since reading cannot be cancelled.
      this.#reading.set(key, left);
    }
    const guide = this.#guides.get(first);
    if (guide === undefined) return;
    this.#guides.delete(first);
    for (let i = 0; i < guide.count; i++) this.#bySequence.delete(first + i);
    this.#waiting.delete(guide);
    this.#ahead = this.#ahead.filter((ahead) => ahead.guide !== guide);
    guide.matcher.users.delete(guide);
    if (this.#kept.release(guide.key)) guide.matcher.walk = null;
  }

  #ask({ step, entries }: Extract<GuideRequest, { type: 'mask' }>): void {
    // Work queued for a step that is over is of no use any more.
    this.#ahead = [];
    for (let i = 0; i < entries.length; ) {
      const [sequence, position, count, draftLength, jumps] = entries.subarray(i, i + 5) as unknown as Five;
      const tokens = entries.subarray(i + 5, i + 5 + count);
      const draft = entries.subarray(i + 5 + count, i + 5 + count + draftLength);
      i += 5 + count + draftLength;
      const guide = this.#bySequence.get(sequence);
      if (guide === undefined) continue;
      this.#add(guide, new MaskJob(guide, { step, sequence, position, tokens, draft, jumps: jumps === 1 }));
    }
  }

  /** Runs the free part of a job now; the rest waits for its turns, behind the guide's other jobs. */
  #add(guide: FollowedGuide, job: MaskJob): void {
    guide.jobs.add(job);
    const jobs = this.#waiting.get(guide);
    if (jobs !== undefined) jobs.push(job);
    else if (this.#goOn(guide, job, 0)) this.#waiting.set(guide, [job]);
  }

  /** Continues a job; false: the job is over. */
  #goOn(guide: FollowedGuide, job: MaskJob, fuel: number): boolean {
    this.#noteBusy(guide.first);
    try {
      if (!job.goOn(fuel)) return true;
      if (job.isBeginning) this.#reply({ type: 'opened', first: guide.first, error: '', isInvalid: false });
      else {
        this.#done.push(job.step, job.sequence);
        this.#ahead.push(...job.ahead);
      }
    } catch (error) {
      const isInvalid = error instanceof GuideBudgetError;
      const message = messageOf(error);
      if (job.isBeginning) this.#reply({ type: 'opened', first: guide.first, error: message, isInvalid });
      else {
        const failure = { sequence: job.sequence, error: message, isInvalid };
        const isStray = error instanceof StrayTokenError;
        this.#failures.push(
          isStray ? { ...failure, stray: { token: error.token, place: error.place } } : failure,
        );
      }
    } finally {
      this.#noteBusy(-1);
    }
    guide.jobs.delete(job);
    return false;
  }

  #flush(): void {
    if (this.#done.length === 0 && this.#failures.length === 0) return;
    this.#reply({ type: 'masked', done: Int32Array.from(this.#done), failures: this.#failures });
    this.#done = [];
    this.#failures = [];
  }

  #lookAhead(): void {
    const entries = new Map<number, number[]>();
    let left = LOOK_AHEAD_COST;
    for (const ahead of this.#ahead.splice(0)) {
      const { guide, step, sequence, position, places, generation } = ahead;
      // A walk that has begun must not be crossed by another one.
      if (left <= 0 || guide.matcher.walk !== null || guide.matcher.generation !== generation) continue;
      this.#noteBusy(guide.first);
      const before = guide.matcher.work;
      const forced = this.#forcedBehind(guide.matcher, places, left);
      left -= guide.matcher.work - before;
      this.#noteBusy(-1);
      const found = entries.get(step) ?? [];
      entries.set(step, found);
      for (let i = 0; i < forced.length; ) {
        const end = i + 2 + forced[i + 1]!;
        found.push(sequence, position, ...forced.subarray(i, end));
        i = end;
      }
    }
    for (const [step, found] of entries) {
      if (found.length > 0) this.#reply({ type: 'forced', step, entries: Int32Array.from(found) });
    }
  }

  /**
   * Forced tokens after these places; none if finding them costs too much or fails: then the mask is asked
   * for again, and fails, when it is the answer's turn.
   */
  #forcedBehind(matcher: GrammarMatcher, places: Places, cost: number): Int32Array {
    try {
      return matcher.limited(cost, () => forcedBehind(matcher, this.#trie, places));
    } catch (error) {
      if (!(error instanceof GuideBudgetError || error instanceof SearchLimitError)) throw error;
      return NO_TOKENS;
    }
  }
}

type Five = [number, number, number, number, number];
