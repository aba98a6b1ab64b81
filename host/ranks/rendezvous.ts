import { rmSync } from 'node:fs';
import type net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type GroupShape, sizeOf } from '../../engine/ranks/rank-shape.js';
import { EngineFailure } from '../engine-failure.js';
import { FRAMES, type Frame, textFrame } from './frames.js';
import { type GroupAddress, isShared } from './group-address.js';
import { connectToRanks, HANDSHAKE_LIMIT_MS, listenForRanks, RankSocket } from './rank-sockets.js';

/** What each rank knows before it meets the others. */
export interface Meeting {
  address: GroupAddress;
  secret: string | null;
  shape: GroupShape;
  rank: number;
  /** Version and build, which must be the same. */
  build: string;
  /** Milliseconds until all must have come. */
  limitMs: number;
}

/** What a rank says of itself. */
interface Hello {
  rank: number;
  tensorParallelSize: number;
  pipelineParallelSize: number;
  build: string;
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
}

const RETRY_MS = 100;
/** Milliseconds in which a connection must say which rank it is. */
const HELLO_LIMIT_MS = 10_000;
/** Connections beyond those of the ranks, of which some may be strangers. */
const SPARE_CONNECTIONS = 64;
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

/** Rank 0: waits for all others. `path`: the memory to tell them of; null: none is shared. @throws EngineFailure */
export async function awaitRanks(
  meeting: Meeting,
  path: string | null,
  events: MetEvents,
): Promise<MetGroup> {
  const { address, secret, shape, limitMs } = meeting;
  const size = sizeOf(shape);
  const sockets = new Map<number, RankSocket>();
  let problem = '';
  await removeStaleSocket(address);
  const missing = () =>
    Array.from({ length: size - 1 }, (_, i) => i + 1).filter((rank) => !sockets.has(rank));
  let server: net.Server | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const late = () => {
        const names = missing().join(', ');
        reject(
          new EngineFailure(
            `Of ${size} ranks these have not joined within ${limitMs} ms: ${names}.${problem}`,
          ),
        );
      };
      const timer = setTimeout(late, limitMs);
      const note = (text: string) => {
        problem = ` The last one that tried: ${text}`;
      };
      const settle = () => {
        if (missing().length > 0) return;
        clearTimeout(timer);
        resolve();
      };
      server = listenForRanks(address, secret, {
        onConnection: (socket) => greet(socket, meeting, sockets, events, { note, settle }),
        onProblem: (error) => {
          note(`${whyNot(error)}.`);
          if (!server!.listening) reject(new EngineFailure(`Rank 0 cannot listen: ${whyNot(error)}.`));
        },
      });
      server.maxConnections = size + SPARE_CONNECTIONS;
    });
  } catch (error) {
    for (const socket of sockets.values()) socket.end();
    throw error;
  } finally {
    server?.close();
  }
  for (const socket of sockets.values()) socket.send(textFrame(FRAMES.welcome, JSON.stringify({ path })));
  return { sockets, path };
}

/** Takes a connection's first frame, and the connection if it is one of the group's ranks. */
function greet(
  socket: net.Socket,
  { shape, build }: Meeting,
  sockets: Map<number, RankSocket>,
  events: MetEvents,
  { note, settle }: { note: (text: string) => void; settle: () => void },
): void {
  let rank: number | null = null;
  const first = (frame: Frame) => {
    const hello = frame.kind === FRAMES.hello ? parse<Hello>(frame) : null;
    const reason =
      hello === null ? 'It did not say which rank it is.' : refusalOf(hello, shape, build, sockets);
    if (reason !== null) {
      note(reason);
      own.send(textFrame(FRAMES.refusal, reason));
      own.end();
      return;
    }
    rank = hello!.rank;
    clearTimeout(timer);
    sockets.set(rank, own);
    settle();
  };
  const own = new RankSocket(
    socket,
    (frame) => (rank === null ? first(frame) : events.onFrame(rank, frame)),
    (reason) => {
      clearTimeout(timer);
      if (rank === null) return;
      sockets.delete(rank);
      events.onEnd(rank, reason);
    },
  );
  const timer = setTimeout(() => own.end(), HELLO_LIMIT_MS);
}

/** Reason why a rank is not taken; null: it is. */
function refusalOf(
  hello: Hello,
  shape: GroupShape,
  build: string,
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
  if (taken.has(rank)) return `There is a rank ${rank} already.`;
  return null;
}

/** The others: joins rank 0, which may begin later. @throws EngineFailure with the reason of a refusal */
export async function joinRanks(meeting: Meeting, events: MetEvents): Promise<MetGroup> {
  const { address, secret, shape, rank, build, limitMs } = meeting;
  const endMs = performance.now() + limitMs;
  for (;;) {
    try {
      const leftMs = Math.max(1, Math.min(endMs - performance.now(), HANDSHAKE_LIMIT_MS));
      const socket = await connectToRanks(address, secret, leftMs);
      const hello: Hello = { rank, ...shape, build };
      return await askToJoin(socket, hello, events, endMs - performance.now());
    } catch (error) {
      if (error instanceof EngineFailure) throw error;
      const code = systemCode(error);
      if (!NOT_YET.has(code)) {
        throw new EngineFailure(`Rank ${rank} cannot join the group: ${whyNot(error)}.`);
      }
      if (performance.now() > endMs)
        throw new EngineFailure(`Rank ${rank} could not join rank 0 within ${limitMs} ms (${code}).`);
      await sleep(RETRY_MS);
    }
  }
}

function askToJoin(net: net.Socket, hello: Hello, events: MetEvents, limitMs: number): Promise<MetGroup> {
  return new Promise((resolve, reject) => {
    let isIn = false;
    const timer = setTimeout(() => net.destroy(), limitMs);
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

/** A connection's error as the end of a sentence; those of the encryption mean that the two sides have different secrets. */
function whyNot(error: unknown): string {
  const code = systemCode(error);
  if (code.startsWith('ERR_SSL')) return `it has not the secret that rank 0 has (${code})`;
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
