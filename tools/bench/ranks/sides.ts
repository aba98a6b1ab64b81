import { randomBytes } from 'node:crypto';
import type { OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import { EngineBench, type Manager, type ManagerClass } from '../../compare/engine-bench.js';
import { freePort } from '../../support/free-port.js';
import { SlowLink } from '../../support/slow-link.js';

/** One way to run the model. */
export interface Side {
  name: string;
  bench: EngineBench;
  /** The link between its ranks; null: they share memory, or there is one process. */
  link: SlowLink | null;
  end(): Promise<void>;
}

/** A side in which one manager starts all ranks. */
export function openSide(
  GptManager: ManagerClass,
  enginePath: string,
  name: string,
  params: OptionalParams,
): Side {
  const bench = new EngineBench(GptManager, enginePath, params);
  return {
    name,
    bench,
    link: null,
    end: async () => {
      await bench.shutdown();
    },
  };
}

/** Two stages, each with a manager of its own, that meet over a link with delay. */
export async function openLinkedStages(
  GptManager: ManagerClass,
  enginePath: string,
  params: OptionalParams,
  delayMs: number,
): Promise<Side> {
  const port = await freePort();
  const link = await SlowLink.open(port, delayMs);
  const secret = randomBytes(16).toString('hex');
  const optionalParams = { ...params, pipelineParallelSize: 2 };
  const place = (rank: number, to: number) => ({ rank, size: 2, address: `127.0.0.1:${to}`, secret });
  const bench = new EngineBench(GptManager, enginePath, optionalParams, { ranks: place(0, port) });
  const other: Manager = new GptManager({
    enginePath,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    getInferenceRequests: () => [],
    sendResponse: () => {},
    optionalParams: { enableChunkedContext: true, maxSeqLen: 2048, ...optionalParams, isolate: true },
    ranks: place(1, link.port),
  });
  // It ends when rank 0 shuts down.
  other.ready.catch(() => {});
  const end = async () => {
    await bench.shutdown();
    await other.shutdown();
    link.close();
  };
  return { name: `2 stages, ${delayMs} ms`, bench, link, end };
}
