import type { AppOptions } from '../../../../../src/server/app/app.js';
import type { Platform } from '../../../../../src/server/inferring/platform.js';
import { say, type ToyServer, toyServer } from '../../../support/toy-server.js';
import { type FakeModel, FakeRepository } from './fake-models.js';

export interface FakePlatform extends ToyServer {
  repository: FakeRepository;
  /** POST of a JSON body, or of bytes and texts as they are, to `/v2/models/MODEL/infer`. */
  infer(model: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
}

type FakePlatformOptions = Partial<Omit<AppOptions, 'models'>> &
  Partial<Pick<Platform, 'allowsUpload' | 'sharedMemory'>>;

/** The whole HTTP side over models that compute at once. */
export function fakePlatform(
  models: readonly FakeModel[],
  { allowsUpload = false, sharedMemory = null, ...options }: FakePlatformOptions = {},
): FakePlatform {
  const repository = new FakeRepository(models);
  const toy = toyServer(() => say('x'), {
    platform: { repository, serverId: 'triton', allowsUpload, sharedMemory },
    ...options,
  });
  return {
    ...toy,
    repository,
    infer: async (model, body, headers = {}) => {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array;
      return toy.app.request(`/v2/models/${model}/infer`, {
        method: 'POST',
        headers,
        body: isRaw ? (body as string | Uint8Array<ArrayBuffer>) : JSON.stringify(body),
      });
    },
  };
}
