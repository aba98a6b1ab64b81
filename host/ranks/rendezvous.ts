import { existsSync, rmSync } from 'node:fs';
import type net from 'node:net';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressText, type GroupAddress, isShared } from '../../callbacks/group-address.js';
import { type GroupShape, sizeOf } from '../../engine/sharding/rank-shape.js';
import { EngineFailure } from '../engine-failure.js';
import { Door } from './door.js';
import { FRAMES, type Frame, textFrame } from './frames.js';
import { connectToRanks, HANDSHAKE_LIMIT_MS, RankSocket } from './rank-sockets.js';

/** What each rank knows before it meets the others. */
export interface Meeting {
  address: GroupAddress;
  secret: string | null;
  shape: GroupShape;
  rank: number;
  /** Version and build, which must be the same. */
  build: string;
  /** Name of the model and its weights, which must be the same. */
  model: string;
  /** Milliseconds until all must have come; null: they are waited for without end. */
  joinLimitMs: number | null;
  /** Most milliseconds of one wait for another rank: a connection that is silent for longer is lost. */
  limitMs: number;
}

/** What a rank says of itself. */
interface Hello {
  rank: number;
  tensorParallelSize: number;
  pipelineParallelSize: number;
  build: string;
  model: string;
}

/** A group that has met. */
export interface MetGroup {
  /** Connections by rank: rank 0 has all, each other rank that to rank 0. */
  sockets: ReadonlyMap<number, RankSocket>;
  /** The memory of rank 0, which all share; null: each rank has its own. */
  path: string | null;
}

export interface MetEvents {
  onFrame: (rank: number, frame: Frame) => void;
  onEnd: (rank: number, reason: string) => void;
  /** Rank 0 waits for these ranks; `refused`: why the last one that came was not taken. */
  onMissing: (ranks: number[], refused: string | null) => void;
}

const RETRY_MS = 100;
/** Errors of a connection to a rank 0 that has not begun to listen. */
const NOT_YET = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'EPIPE',
]);
/** What TLS says where the two sides have different secrets. */
const OTHER_SECRET = /BAD_RECORD_MAC|DECRYPT|DIGEST_CHECK/;

/**
 * Rank 0: waits for all others. `path`: the memory to announce to them; null: none is shared. @throws
 * EngineFailure
 */
export async function awaitRanks(
  meeting: Meeting,
  path: string | null,
  events: MetEvents,
): Promise<MetGroup> {
  const folder = missingFolder(meeting.address);
  if (folder !== null)
    throw new EngineFailure(
      `Rank 0 cannot listen at ${addressText(meeting.address)}: there is no folder ${folder}.`,
    );
  await removeStaleSocket(meeting.address);
  const reception = new Reception(meeting, events);
  try {
    await reception.whenAllAreThere;
  } catch (error) {
    for (const socket of reception.sockets.values()) socket.end();
    throw error;
  } finally {
    reception.close();
  }
  const { sockets } = reception;
  for (const socket of sockets.values()) socket.send(textFrame(FRAMES.welcome, JSON.stringify({ path })));
  return { sockets, path };
}

/** Rank 0's end of a meeting, until all are there. */
class Reception {
  readonly sockets = new Map<number, RankSocket>();
  readonly whenAllAreThere: Promise<void>;
  readonly #meeting: Meeting;
  readonly #events: MetEvents;
  readonly #door: Door;
  readonly #timer: NodeJS.Timeout | undefined;
  #resolve!: () => void;
  #reject!: (error: Error) => void;
  /** Why the last rank that tried, any of them, is not there. */
  #problem = '';
  #isOver = false;

  constructor(meeting: Meeting, events: MetEvents) {
    const { address, secret, joinLimitMs } = meeting;
    this.#meeting = meeting;
    this.#events = events;
    this.whenAllAreThere = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (joinLimitMs !== null) this.#timer = setTimeout(() => this.#giveUp(joinLimitMs), joinLimitMs);
    this.#door = new Door(address, secret, {
      onConnection: (socket) => this.#greet(socket),
      onProblem: (error) => {
        this.#problem = `${whyNot(error)}.`;
        if (!this.#door.isOpen) this.#reject(new EngineFailure(`Rank 0 cannot listen: ${whyNot(error)}.`));
      },
    });
    this.#tell(null);
  }

  close(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#door.close();
  }

  get #missing(): number[] {
    const others = Array.from({ length: sizeOf(this.#meeting.shape) - 1 }, (_, i) => i + 1);
    return others.filter((rank) => !this.sockets.has(rank));
  }

  #giveUp(limitMs: number): void {
    const names = this.#missing.join(', ');
    const last = this.#problem === '' ? '' : ` The last one that tried: ${this.#problem}`;
    const size = sizeOf(this.#meeting.shape);
    this.#reject(
      new EngineFailure(`Of ${size} ranks these have not joined within ${limitMs} ms: ${names}.${last}`),
    );
  }

  #tell(refused: string | null): void {
    const missing = this.#missing;
    this.#events.onMissing(missing, refused);
    if (missing.length === 0) this.#resolve();
  }

  /** Takes a connection's first frame, and the connection if it is one of the group's ranks. */
  #greet(socket: net.Socket): void {
    const { address, limitMs } = this.#meeting;
    let rank: number | null = null;
    const first = (frame: Frame) => {
      const hello = frame.kind === FRAMES.hello ? parse<Hello>(frame) : null;
      const reason =
        hello === null ? 'It did not say which rank it is.' : refusalOf(hello, this.#meeting, this.sockets);
      if (reason !== null) {
        this.#problem = reason;
        if (hello !== null) this.#tell(reason);
        own.send(textFrame(FRAMES.refusal, reason));
        own.end();
        return;
      }
      rank = hello!.rank;
      this.#door.admit(socket);
      if (!isShared(address)) own.watch(limitMs);
      this.sockets.set(rank, own);
      this.#tell(null);
    };
    const own = new RankSocket(
      socket,
      (frame) => (rank === null ? first(frame) : this.#events.onFrame(rank, frame)),
      (reason) => {
        if (rank === null) return;
        this.sockets.delete(rank);
        this.#events.onEnd(rank, reason);
        if (!this.#isOver) this.#tell(null);
      },
    );
  }
}

/** The folder of a path that is not there; null: it is, or there is no path. */
function missingFolder(address: GroupAddress): string | null {
  if (!isShared(address)) return null;
  const folder = dirname(address.path);
  return existsSync(folder) ? null : folder;
}

/** Reason why a rank is not taken; null: it is. */
function refusalOf(
  hello: Hello,
  { shape, build, model }: Meeting,
  taken: ReadonlyMap<number, unknown>,
): string | null {
  const { rank, tensorParallelSize, pipelineParallelSize } = hello;
  if (hello.build !== build)
    return `Rank ${rank} is of ${hello.build}, but rank 0 of ${build}; run the same build everywhere.`;
  if (
    tensorParallelSize !== shape.tensorParallelSize ||
    pipelineParallelSize !== shape.pipelineParallelSize
  ) {
    return `Rank ${rank} is of a group of ${tensorParallelSize} x ${pipelineParallelSize} ranks, but rank 0 of one of ${shape.tensorParallelSize} x ${shape.pipelineParallelSize}.`;
  }
  if (!(Number.isInteger(rank) && rank >= 1 && rank < sizeOf(shape)))
    return `There is no rank ${rank} of ${sizeOf(shape)}.`;
  if (hello.model !== model)
    return `Rank ${rank} has another model than rank 0, or other weights; give all ranks the same engine.`;
  if (taken.has(rank)) return `There is a rank ${rank} already.`;
  return null;
}

/** The others: joins rank 0, which may begin later. @throws EngineFailure with the reason of a refusal */
export async function joinRanks(meeting: Meeting, events: MetEvents): Promise<MetGroup> {
  const { address, secret, shape, rank, build, model, joinLimitMs } = meeting;
  const endMs = performance.now() + (joinLimitMs ?? Number.POSITIVE_INFINITY);
  for (;;) {
    try {
      const leftMs = Math.max(1, Math.min(endMs - performance.now(), HANDSHAKE_LIMIT_MS));
      const socket = await connectToRanks(address, secret, leftMs);
      return await askToJoin(socket, meeting, { rank, ...shape, build, model }, events, endMs);
    } catch (error) {
      if (error instanceof EngineFailure) throw error;
      const code = systemCode(error);
      if (!NOT_YET.has(code)) {
        const place = addressText(address);
        throw new EngineFailure(`Rank ${rank} cannot join the group at ${place}: ${whyNot(error)}.`);
      }
      if (performance.now() > endMs) {
        const folder = missingFolder(address);
        const why = folder === null ? code : `there is no folder ${folder}`;
        throw new EngineFailure(`Rank ${rank} could not join rank 0 within ${joinLimitMs} ms (${why}).`);
      }
      await sleep(RETRY_MS);
    }
  }
}

function askToJoin(
  net: net.Socket,
  { address, limitMs }: Meeting,
  hello: Hello,
  events: MetEvents,
  endMs: number,
): Promise<MetGroup> {
  return new Promise((resolve, reject) => {
    let isIn = false;
    const timer =
      endMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => net.destroy(), endMs - performance.now());
    const socket = new RankSocket(
      net,
      (frame) => {
        if (isIn) events.onFrame(0, frame);
        else if (frame.kind === FRAMES.refusal) reject(new EngineFailure(textOf(frame)));
        else if (frame.kind === FRAMES.welcome) {
          isIn = true;
          clearTimeout(timer);
          resolve({
            sockets: new Map([[0, socket]]),
            path: parse<{ path: string | null }>(frame)?.path ?? null,
          });
        }
      },
      (reason) => {
        clearTimeout(timer);
        if (isIn) events.onEnd(0, reason);
        // Rank 0 ended while it waited for others; it may begin again.
        else reject(Object.assign(new Error(`Rank 0 is gone: ${reason}.`), { code: 'ECONNRESET' }));
      },
    );
    socket.send(textFrame(FRAMES.hello, JSON.stringify(hello)));
    if (!isShared(address)) socket.watch(limitMs);
  });
}

/** Removes the socket's file that a rank 0 left which is gone. */
async function removeStaleSocket(address: GroupAddress): Promise<void> {
  if (!isShared(address)) return;
  try {
    (await connectToRanks(address, null)).destroy();
  } catch (error) {
    if (systemCode(error) === 'ECONNREFUSED') rmSync(address.path, { force: true });
  }
}

function systemCode(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? '');
}

/** A connection's error as the end of a sentence. */
function whyNot(error: unknown): string {
  const code = systemCode(error);
  if (OTHER_SECRET.test(code)) return `it has not the secret that rank 0 has (${code})`;
  if (code.startsWith('ERR_SSL'))
    return `the other side is no rank of this kind: it speaks something else (${code})`;
  return (error as Error).message;
}

function textOf({ bytes }: Frame): string {
  return Buffer.from(bytes).toString('utf8');
}

function parse<T>(frame: Frame): T | null {
  try {
    return JSON.parse(textOf(frame)) as T;
  } catch {
    return null;
  }
}
