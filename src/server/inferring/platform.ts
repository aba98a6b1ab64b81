import type { ModelRepository } from '../../serving/model-repository.js';
import { RegionAccess } from '../../serving/protocol/region-access.js';
import type { SharedRegions } from '../../serving/shared-memory/shared-regions.js';
import type { ApiKeys, Caller } from '../web/access/api-keys.js';
import { requireAdmin } from '../web/access/auth.js';

/**
 * A server of the Open Inference Protocol, whatever clients speak with it: its models, and what it reports
 * about itself.
 */
export interface Platform {
  repository: ModelRepository;
  serverId: string;
  /** A load may bring a configuration and files. */
  allowsUpload: boolean;
  /** Shared memory of clients on this machine; null: they have no leave. */
  sharedMemory: SharedRegions | null;
}

/**
 * Shared memory for the tensors of one request. Where there are several keys it is for admins: a client that
 * names a region reaches all that this server may read and write.
 * @param maxBytes of all its inputs
 */
export function regionAccess(
  { sharedMemory }: Platform,
  caller: Caller,
  apiKeys: ApiKeys,
  maxBytes: number,
): RegionAccess {
  return new RegionAccess(sharedMemory, maxBytes, () => requireAdmin(caller, apiKeys));
}
