import { startActions } from "./actions.js";
import { startAsk } from "./ask.js";
import { startColours } from "./colours.js";
import { startKeys } from "./keys.js";
import { startNoting } from "./noting.js";
import { startParts } from "./parts.js";
import { startSearch } from "./search.js";
import { startViewer } from "./viewer.js";

startColours();
startActions();
startParts();
startViewer();
startSearch();
startAsk();
startNoting();
startKeys();
