import type { AnsweringServices } from '../answering/services.js';
import type { Batches } from '../batches/batches.js';
import type { FileStore } from '../files/file-store.js';
import type { Platform } from '../inferring/platform.js';
import type { ApiKeys, Caller } from '../web/access/api-keys.js';
import type { RequestMemory } from '../web/memory/request-memory.js';
import { type RouteServices, routesWith } from '../web/route.js';
import type { ResponseStore } from './responses/response-store.js';

/** Services of OpenAI's routes. */
export interface OpenAiServices extends RouteServices, AnsweringServices {
  responses: ResponseStore;
  /** Files of clients. */
  files: FileStore;
  batches: Batches;
  /** Opens an account of memory for work that outlives its request. */
  openMemory: (caller: Caller) => RequestMemory;
  apiKeys: ApiKeys;
  /** Bytes of the longest body. */
  maxBodyBytes: number;
  /** The Open Inference Protocol's server, whose models take adapters too; null: there is none. */
  platform: Platform | null;
  /** Folder of the LoRA adapters that clients may load; null: they may load none. */
  adapterFolder: string | null;
  version: string;
}

export const defineRoute = routesWith<OpenAiServices>();
