import {
  noCudaMemory,
  noCudaRegion,
  noSharedMemory,
} from '../../../serving/shared-memory/no-shared-memory.js';
import { requireAdmin } from '../../web/access/auth.js';
import type { InferenceServices, TypesByName } from './inference-methods.js';
import { type Method, plainMethod, textIn } from './method.js';

/** Methods of shared memory: that of the system, where clients on this machine have leave, and that of GPUs, of which there is none. */
export function memoryMethods(types: TypesByName, { platform, apiKeys }: InferenceServices): Method[] {
  const { sharedMemory } = platform;
  return [
    plainMethod(types('SystemSharedMemoryStatus'), {}, (fields) => {
      const name = textIn(fields, 'name');
      const regions = sharedMemory?.status(name) ?? [];
      return {
        regions: Object.fromEntries(
          regions.map(({ byteSize, ...region }) => [region.name, { ...region, byte_size: byteSize }]),
        ),
      };
    }),
    plainMethod(types('SystemSharedMemoryRegister'), { isWork: true }, async (fields, caller) => {
      if (sharedMemory === null) throw noSharedMemory();
      requireAdmin(caller, apiKeys);
      await sharedMemory.register({
        name: textIn(fields, 'name'),
        key: textIn(fields, 'key'),
        offset: Number(fields.offset),
        byteSize: Number(fields.byte_size),
      });
      return {};
    }),
    plainMethod(types('SystemSharedMemoryUnregister'), {}, (fields, caller) => {
      if (sharedMemory !== null) requireAdmin(caller, apiKeys);
      sharedMemory?.unregister(textIn(fields, 'name'));
      return {};
    }),
    plainMethod(types('CudaSharedMemoryStatus'), {}, (fields) => {
      const name = textIn(fields, 'name');
      if (name !== '') throw noCudaRegion(name);
      return {};
    }),
    plainMethod(types('CudaSharedMemoryRegister'), {}, () => {
      throw noCudaMemory();
    }),
    plainMethod(types('CudaSharedMemoryUnregister'), {}, () => ({})),
  ];
}
