import type { AnswerTally } from '../../../../callbacks/infer/answer-tally.js';
import { malformed } from '../../../serving/infer-failure.js';
import type { Caller } from '../../web/access/api-keys.js';
import type { RequestMemory } from '../../web/memory/request-memory.js';
import type { Fields, MethodTypes } from '../schema/message-types.js';
import type { GrpcCall } from '../wire/grpc-call.js';
import { GrpcError } from '../wire/status.js';

/** A call that is let in. */
export interface LetIn {
  call: GrpcCall;
  caller: Caller;
  /** Adds up what models compute for it, for its line in the access log. */
  tally: AnswerTally;
  /** Opens an account of what a request of a stream makes the server hold. */
  openMemory(): RequestMemory;
  /** A request of a stream has begun, which the end of the server waits for; calls of one message count by themselves. Returns its end. */
  beginWork(): () => void;
  /** Reports a failed request of a stream to the server's metrics and log. */
  noteFailure(error: unknown): void;
}

/** How a method is answered. */
export interface Method {
  path: string;
  /** No API key is needed: the method reveals nothing about the models and changes nothing. */
  isOpen: boolean;
  /** It is refused while the server is shutting down. */
  isWork: boolean;
  /** Machines ask it every few seconds. */
  isProbe: boolean;
  /** Its calls last as long as their clients like: the end of the server does not wait for them, but for their requests. */
  isStream: boolean;
  answer(letIn: LetIn): Promise<void>;
}

/** What a method is, but for its answer; each is false where it is not given. */
export type MethodTraits = Partial<Pick<Method, 'isOpen' | 'isWork' | 'isProbe'>>;

/** Bytes of a request that has names and settings alone: one with the most fields takes some milliseconds to be read. */
const SMALL_MESSAGE = 64 * 1024;

/** A method of one request and one answer, both small. */
export function plainMethod(
  types: MethodTypes,
  traits: MethodTraits,
  answer: (fields: Fields, caller: Caller) => object | Promise<object>,
): Method {
  return {
    ...method(types, traits),
    answer: async ({ call, caller }) => {
      const { bytes, memory } = await call.only();
      try {
        if (bytes.length > SMALL_MESSAGE) {
          throw new GrpcError(
            'RESOURCE_EXHAUSTED',
            `a request of ${types.name} has ${bytes.length} bytes; at most ${SMALL_MESSAGE} are taken`,
          );
        }
        await call.reply([types.write(await answer(types.read(bytes), caller))]);
      } finally {
        memory.release();
      }
    },
  };
}

export function method({ path, isStream }: MethodTypes, traits: MethodTraits): Omit<Method, 'answer'> {
  return { path, isStream, isOpen: false, isWork: false, isProbe: false, ...traits };
}

/** A text among the fields. */
export const textIn = (fields: Fields, name: string) => fields[name] as string;

const EXPECTED = 'version should be an integral value > 0';

/** The version that a request names; '': the latest. Words are Triton's. @throws InferError for what is no number above 0 */
export function versionOf(text: string): string {
  if (text === '' || /^[1-9]\d{0,17}$/.test(text)) return text;
  throw malformed(
    /^-?\d{1,18}$/.test(text)
      ? `invalid model version specified '${text}' , ${EXPECTED}`
      : `failed to get model version from specified version string '${text}' (details: stol), ${EXPECTED}`,
  );
}
