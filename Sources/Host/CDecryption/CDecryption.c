#include "CDecryption.h"
