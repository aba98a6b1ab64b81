/** Extensions of the protocol that this server has. */
const EXTENSIONS = [
  'classification',
  'model_repository',
  'model_repository(unload_dependents)',
  'schedule_policy',
  'model_configuration',
  'generate',
  'binary_tensor_data',
  'parameters',
  'statistics',
  'trace',
  'logging',
];

/** The extensions that a server reports. @param hasSharedMemory clients on this machine may use it */
export function extensions(hasSharedMemory: boolean): readonly string[] {
  return hasSharedMemory ? [...EXTENSIONS, 'system_shared_memory'] : EXTENSIONS;
}
