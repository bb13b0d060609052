#include "CLinuxPAM.h"
