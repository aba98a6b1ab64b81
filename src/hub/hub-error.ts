/** A repository of models that cannot be had, in one sentence that says what to do where something can be done. */
export class HubError extends Error {
  override name = 'HubError';
}
