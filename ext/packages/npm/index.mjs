import diffuse from "./index.cjs";

export const { getLoadablePath, load } = diffuse;
