/** URL of the module that holds a rank's connections: a file beside this one, also where both are bundled. */
export const groupThreadScript = (): URL => new URL('./group-thread.js', import.meta.url);
