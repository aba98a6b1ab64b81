import type { SkewedClock } from './skewed-clock.js';
import type { Wire } from './wire.js';

/** A program of a fleet that a fault may strike. Another process of it is the same member. */
export interface Member {
  readonly name: string;
  readonly role: 'worker' | 'gateway' | 'nats';
  /** Its connections, where they go through a wire of ours. */
  readonly wire: Wire | null;
  /** The wall clock that it sees, where that can be set. */
  readonly clock: SkewedClock | null;
  /** Bytes that it has sent through its wire. */
  readonly sentBytes: number;
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal that ends it, and waits for the end. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  /** Starts it, and waits until it can do its work. */
  start(): Promise<void>;
  /** Starts another process of it, and then ends the last one by SIGTERM: a rolling update. */
  succeed(): Promise<void>;
  /** Removes what it has stored, while it is not there. */
  erase(): void;
}

/** What came of a request that did not get its whole answer. */
export interface Trouble {
  /** Wrong: what came is no answer at all, whatever has happened. */
  kind: 'refused' | 'broken' | 'wrong';
  /** HTTP status of a refusal, or of an error within a stream; null: the connection ended. */
  status: number | null;
  /** The answer had Retry-After. */
  isToRetry: boolean;
  /** What was said. */
  text: string;
}

/** Programs that together answer requests. */
export interface Fleet {
  readonly members: readonly Member[];
  /** Addresses to ask now, such as http://127.0.0.1:8000. */
  addresses(): readonly string[];
  /** How often all that clients have stored was lost: what they made before is not there any more. */
  readonly numErasures: number;
  /** Why a request at this address may have ended so, in a few words that count such ends; null: it must not. */
  excuse(trouble: Trouble, address: string): string | null;
  /** Waits until nothing is left of the requests, and names what does not go away. */
  leftovers(): Promise<string[]>;
  close(): Promise<void>;
}
