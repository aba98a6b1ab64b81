import type { ServerState } from '../../web/server-state.js';
import type { MethodTypes } from '../schema/message-types.js';
import { GrpcError } from '../wire/status.js';
import { type LetIn, type Method, method, plainMethod, textIn } from './method.js';

/** Names of services that may be asked for; '': the server. */
const SERVICES: readonly string[] = ['', 'inference.GRPCInferenceService'];
/** Milliseconds between two looks at the server's state for those that watch it. */
const LOOK_MS = 1000;

type Health = 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';

/** Methods of grpc.health.v1.Health, for balancers and orchestrators. */
export function healthMethods(
  types: (name: string) => MethodTypes,
  state: Pick<ServerState, 'status'>,
): readonly Method[] {
  const health = (service: string): Health => {
    if (!SERVICES.includes(service)) return 'SERVICE_UNKNOWN';
    return state.status === 'ready' || state.status === 'degraded' ? 'SERVING' : 'NOT_SERVING';
  };
  const watch = types('Watch');
  return [
    plainMethod(types('Check'), { isOpen: true, isProbe: true }, (fields) => {
      const service = textIn(fields, 'service');
      const status = health(service);
      if (status !== 'SERVICE_UNKNOWN') return { status };
      throw new GrpcError('NOT_FOUND', `there is no service '${service.slice(0, 100)}' on this server`);
    }),
    {
      ...method(watch, { isOpen: true, isProbe: true }),
      answer: (letIn) => watchHealth(letIn, watch, health),
    },
  ];
}

/** Sends the server's status, at once and at each change, for as long as the client listens. */
async function watchHealth(
  { call }: LetIn,
  types: MethodTypes,
  health: (service: string) => Health,
): Promise<void> {
  const { bytes, memory } = await call.only();
  memory.release();
  const service = textIn(types.read(bytes), 'service').slice(0, 1024);
  let told: Health | null = null;
  while (!call.isOver) {
    const status = health(service);
    if (status !== told) await call.send([types.write({ status })]);
    told = status;
    await pause(call.signal);
  }
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, LOOK_MS);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
