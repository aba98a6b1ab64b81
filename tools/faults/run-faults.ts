import { Client, WrongAnswer } from './client/client.js';
import { difference } from './client/compare.js';
import { stable } from './client/fold.js';
import { Conductor, type StruckFault } from './conductor.js';
import type { Fleet } from './fleet/fleet.js';
import { inParallel } from './in-parallel.js';
import type { Expected } from './reference.js';
import type { DrawnRequest } from './requests/draw-requests.js';
import type { PlannedFault } from './schedule.js';

export interface FaultRun {
  fleet: Fleet;
  requests: readonly DrawnRequest[];
  /** Of the requests, in their order. */
  expected: readonly Expected[];
  plan: readonly PlannedFault[];
  /** Requests that are under way at once. */
  concurrency: number;
  onProgress?: (text: string) => void;
}

/** A request that did not get the expected answer. */
export interface WrongRequest {
  index: number;
  kind: string;
  what: string;
  /** Faults that were while it was asked; `at` is what it had of its own answer when they began. */
  faults: PlannedFault[];
}

export interface FaultReport {
  /** Those that were asked, some of them several times. */
  numRequests: number;
  numTokens: number;
  wrong: WrongRequest[];
  /** What is left of the requests anywhere. */
  leftovers: string[];
  struck: StruckFault[];
  /** Faults of the plan that found no member to strike. */
  numMissed: number;
  /** How often requests were asked again, by the reason. */
  retries: Record<string, number>;
  longestPauseMs: number;
  seconds: number;
}

/** Asks all requests while faults strike, and compares every answer. @throws where a member cannot start again */
export async function runFaults(run: FaultRun): Promise<FaultReport> {
  const { fleet, requests, plan, concurrency, onProgress } = run;
  const conductor = new Conductor(plan, fleet, onProgress);
  const load = new Load(run, conductor);
  const positions = [...requests.keys()];
  const began = performance.now();
  await inParallel(positions, concurrency, (position) => load.ask(position));
  // Faults that found no member to strike have all members now, and some of the requests again.
  for (let due = Number.POSITIVE_INFINITY; conductor.numDue > 0 && conductor.numDue < due; ) {
    due = conductor.numDue;
    await conductor.settle();
    await inParallel(positions.slice(0, concurrency), concurrency, (position) => load.ask(position));
  }
  const seconds = (performance.now() - began) / 1000;
  await conductor.settle();
  return {
    ...load.figures,
    leftovers: await fleet.leftovers(),
    struck: [...conductor.begun],
    numMissed: conductor.numDue,
    seconds,
  };
}

/** The requests of a run, as they are asked. */
class Load {
  readonly figures: Pick<FaultReport, 'numRequests' | 'numTokens' | 'wrong' | 'retries' | 'longestPauseMs'> =
    {
      numRequests: 0,
      numTokens: 0,
      wrong: [],
      retries: {},
      longestPauseMs: 0,
    };
  readonly #run: FaultRun;
  readonly #conductor: Conductor;
  /** Tokens that clients have seen. */
  #numSeen = 0;

  constructor(run: FaultRun, conductor: Conductor) {
    this.#run = run;
    this.#conductor = conductor;
  }

  async ask(position: number): Promise<void> {
    const { requests, expected } = this.#run;
    const request = requests[position]!;
    const { numTokens } = expected[position]!;
    // An event may have several tokens, and what is asked again comes again: a request counts its tokens once, all of them at its end.
    let own = 0;
    const seen: { at: number; own: number }[] = [];
    const note = (count: number) => {
      if (count <= own) return;
      this.#numSeen += count - own;
      own = count;
      seen.push({ at: performance.now(), own });
      this.#conductor.advance(this.#numSeen);
    };
    const begin = performance.now();
    const wrong = await this.#answerOf(request, expected[position]!, (count) =>
      note(Math.min(count, numTokens)),
    );
    const end = performance.now();
    note(numTokens);
    this.figures.numRequests += 1;
    this.figures.numTokens += numTokens;
    if (wrong === null) return;
    const ownAt = (time: number) => seen.findLast(({ at }) => at <= time)?.own ?? 0;
    const faults = this.#conductor.begun
      .filter((fault) => fault.begin < end && fault.end > begin)
      .map(({ kind, seed, begin: at }) => ({ kind, at: ownAt(at), seed }));
    const { index, kind } = request;
    this.figures.wrong.push({ index, kind, what: wrong, faults });
    this.#run.onProgress?.(`request ${index} (${kind}): ${wrong}`);
  }

  /** @returns what is wrong with the answer, in a sentence; null: nothing */
  async #answerOf(
    { index, script }: DrawnRequest,
    { answer }: Expected,
    onEvents: (count: number) => void,
  ): Promise<string | null> {
    const { fleet } = this.#run;
    for (;;) {
      const expected = script.isStreamed ? answer : null;
      const client = new Client(fleet, { turn: index, expected, onEvents });
      const { numErasures } = fleet;
      const wrong = await script.run(client.ask).then(
        (found) => difference(stable(found), answer),
        (error: unknown) => {
          if (error instanceof WrongAnswer) return error.message;
          throw error;
        },
      );
      this.#count(client);
      // Who keeps something in a store that is erased has to begin with it again.
      if (wrong === null || !script.keepsThings || fleet.numErasures === numErasures) return wrong;
      this.#count({ retries: ['what it had stored was erased'], longestPauseMs: 0 });
    }
  }

  #count({ retries, longestPauseMs }: Pick<Client, 'retries' | 'longestPauseMs'>): void {
    const { figures } = this;
    figures.longestPauseMs = Math.max(figures.longestPauseMs, longestPauseMs);
    for (const reason of retries) figures.retries[reason] = (figures.retries[reason] ?? 0) + 1;
  }
}
